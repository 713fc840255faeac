"""Mount frames: folders on which a volume is mounted inside of another volume.

A bucket is a copy of the attempt's own, in which such a folder is simply made. A checkout is
shared by all jobs that mount it: where it lacks the folder, it is mounted entry by entry on a
frame, which has an empty folder or file for each. Everything here blocks on the disk: call it
from a thread.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from hublet.core.folders import FOLDER_MODE, atomic_dir
from hublet.runtime.errors import CannotRun
from hublet.runtime.records import BindMount
from hublet.runtime.volumes.checkouts import find_inside

# Each entry is a mount of its own: a folder with more of them is no place for a volume.
_MAX_ENTRIES = 500


def mount_points_in(target: str, others: Sequence[str]) -> tuple[str, ...]:
    """Return the paths in a volume where others are mounted, but not those inside of these."""
    inside = [other for other in others if other.startswith(f"{target}/")]
    return tuple(
        other.removeprefix(f"{target}/")
        for other in inside
        if not any(other.startswith(f"{between}/") for between in inside)
    )


def frame_binds(bind: BindMount, mount_points: Sequence[str], *, frame: Path) -> list[BindMount]:
    """Return the binds of a checkout in which others can be mounted; the frame is made once.

    Raises CannotRun and OSError.
    """
    missing = {
        mount_point for mount_point in mount_points if find_inside(bind.source, mount_point) is None
    }
    if not missing:
        return [bind]
    entries = list(_entries(bind, missing))
    if not frame.exists():
        with atomic_dir(frame) as folder:
            _make_frame(folder, missing, entries)
    entry_binds = [
        BindMount(source=entry, target=f"{bind.target}/{path}", read_only=True)
        for path, entry in entries
        if not entry.is_symlink()
    ]
    return [replace(bind, source=frame), *entry_binds]


def _entries(bind: BindMount, missing: set[str]) -> Iterator[tuple[str, Path]]:
    """Yield, with its path, each entry beside a missing mount point or beside a folder above one."""
    split = {str(above) for mount_point in missing for above in PurePosixPath(mount_point).parents}
    left = _MAX_ENTRIES
    for inside in sorted(split):
        if (folder := find_inside(bind.source, inside)) is None:
            continue
        for entry in sorted(folder.iterdir()):
            path = str(PurePosixPath(inside, entry.name))
            if path in split and find_inside(bind.source, path) is None:
                raise CannotRun(f"Nothing can be mounted in {bind.target}/{path}: it is no folder")
            # A mount hides the entry in its place.
            if path in split or path in missing:
                continue
            left -= 1
            if left < 0:
                raise CannotRun(f"Nothing can be mounted in {bind.target}: it is too full")
            yield path, entry


def _make_frame(frame: Path, missing: set[str], entries: Sequence[tuple[str, Path]]) -> None:
    for mount_point in missing:
        _make_folder(frame, mount_point)
    for path, entry in entries:
        _make_folder(frame, str(PurePosixPath(path).parent))
        if entry.is_symlink():
            # Its target counts as seen from inside the job.
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
