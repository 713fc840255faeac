"""Mount frames: volumes inside of volumes, which need a folder to be mounted on.

A bucket is a copy of the attempt's own, in which such a folder is simply made. A commit is shared
by all who mount it: where it lacks the folder it is shown entry by entry, on a frame that has
an empty folder or file for each. Everything here blocks on the disk; call it from a thread.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from hublet.core.folders import FOLDER_MODE, atomic_dir
from hublet.runtime.errors import CannotRun
from hublet.runtime.records import BindMount
from hublet.runtime.volumes.checkouts import find_inside

# Each entry is a mount of its own. With more of them beside it, it is the wrong place for a volume.
_MAX_ENTRIES = 500


def mount_points_in(target: str, others: Sequence[str]) -> tuple[str, ...]:
    """Return where in a volume others are mounted; not what is mounted in those in turn."""
    inside = [other for other in others if other.startswith(f"{target}/")]
    return tuple(
        other.removeprefix(f"{target}/")
        for other in inside
        if not any(other.startswith(f"{between}/") for between in inside)
    )


def frame_binds(bind: BindMount, rooms: Sequence[str], *, frame: Path) -> list[BindMount]:
    """Return how a commit is shown so that others can be mounted in it; the frame is made once.

    Raises CannotRun and OSError.
    """
    missing = {room for room in rooms if find_inside(bind.source, room) is None}
    if not missing:
        return [bind]
    entries = list(_entries(bind, missing))
    if not frame.exists():
        with atomic_dir(frame) as folder:
            _make_frame(folder, missing, entries)
    shown = [
        BindMount(source=entry, target=f"{bind.target}/{path}", read_only=True)
        for path, entry in entries
        if not entry.is_symlink()
    ]
    return [replace(bind, source=frame), *shown]


def _entries(bind: BindMount, missing: set[str]) -> Iterator[tuple[str, Path]]:
    """Yield, by its path, each entry that lies beside what is missing, or beside the way to it."""
    parted = {str(above) for room in missing for above in PurePosixPath(room).parents}
    left = _MAX_ENTRIES
    for inside in sorted(parted):
        if (folder := find_inside(bind.source, inside)) is None:
            continue
        for entry in sorted(folder.iterdir()):
            path = str(PurePosixPath(inside, entry.name))
            if path in parted and find_inside(bind.source, path) is None:
                raise CannotRun(f"Nothing can be mounted in {bind.target}/{path}: it is no folder")
            # What is mounted in the place of something hides it.
            if path in parted or path in missing:
                continue
            left -= 1
            if left < 0:
                raise CannotRun(f"Nothing can be mounted in {bind.target}: it is too full")
            yield path, entry


def _make_frame(frame: Path, missing: set[str], entries: Sequence[tuple[str, Path]]) -> None:
    for room in missing:
        _make_folder(frame, room)
    for path, entry in entries:
        _make_folder(frame, str(PurePosixPath(path).parent))
        if entry.is_symlink():
            # It leads to where it led, seen from inside the job.
            (frame / path).symlink_to(entry.readlink())
        elif entry.is_dir():
            _make_folder(frame, path)
        else:
            (frame / path).touch()


def _make_folder(frame: Path, path: str) -> None:
    for step in (*reversed(PurePosixPath(path).parents), PurePosixPath(path)):
        if not (frame / step).exists():
            (frame / step).mkdir()
            (frame / step).chmod(FOLDER_MODE)
