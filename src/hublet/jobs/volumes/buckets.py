"""Buckets as folders: what an attempt is handed, and what it made of that.

Everything here blocks on the disk; call it from a thread.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hublet.core.clock import micros
from hublet.jobs.descent import DEPTH, Closed, Entry, walk
from hublet.jobs.volumes.copying import copy
from hublet.jobs.volumes.errors import NestedTooDeeply
from hublet.jobs.volumes.records import Found, Handed, Left, Seen, Survey
from hublet.repos.blobs.folder import Spool
from hublet.repos.blobs.records import Blob

_CHUNK = 1 << 20
# A job may not be the hub's own user; nobody else gets as far as this folder.
_OPEN_FILE = 0o666
_OPEN_FOLDER = 0o777
_KINDS = {stat.S_IFLNK: "link", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}

# By path: the digest of a file, and where its bytes lie.
Contents = Mapping[str, tuple[str, Path]]


def fill(folder: Path, files: Contents, *, rooms: Sequence[str] = ()) -> dict[str, Seen]:
    """Put files, and the folders on which something is mounted, below a new folder.

    Returns each file as it is now. Raises NestedTooDeeply and OSError.
    """
    _make_folder(folder)
    seen: dict[str, Seen] = {}
    for path, (sha256, content) in files.items():
        if path.count("/") > DEPTH:
            raise NestedTooDeeply(DEPTH)
        for inside in above(path):
            _make_folder(folder / inside)
        copy(content, folder / path, mode=_OPEN_FILE)
        seen[path] = _seen(sha256, (folder / path).lstat())
    for room in rooms:
        for inside in (*above(room), room):
            _make_folder(folder / inside)
    return seen


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(parents=True)
        folder.chmod(_OPEN_FOLDER)


def _seen(sha256: str, status: os.stat_result) -> Seen:
    return Seen(
        sha256=sha256,
        size=status.st_size,
        inode=status.st_ino,
        modified=status.st_mtime_ns,
        changed=status.st_ctime_ns,
    )


def note(path: Path, handed: Handed) -> None:
    with path.open("xb") as file:
        file.write(msgspec.json.encode(handed))
        file.flush()
        # Half a note after a power cut would be in the way of its attempt for ever.
        os.fsync(file.fileno())
    os.utime(path, (0, 0))


def stumbled_at(path: Path) -> int:
    """Return when this was asked of a note first, in microseconds: now, or earlier.

    The time of the file says it, which takes no room on a disk that is full.
    """
    if not path.stat().st_mtime_ns:
        now = micros() * 1000
        os.utime(path, ns=(now, now))
    return path.stat().st_mtime_ns // 1000


def find_note(path: Path) -> Handed | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Handed)
    except FileNotFoundError:
        return None


def survey(folder: Path, before: Mapping[str, Seen]) -> Survey:
    """Compare a folder with what was put there. Raises OSError."""
    changed: list[Found] = []
    left: list[Left] = []
    here: set[str] = set()
    closed: set[str] = set()
    for each in walk(folder):
        if isinstance(each, Closed):
            closed.add(each.path)
            left.append(Left(path=each.path, reason=each.reason))
        elif stat.S_ISREG(each.status.st_mode):
            here.add(each.path)
            if _may_differ(before.get(each.path), each.status):
                changed.append(_found(each))
        else:
            # A link may lead out of the folder, and a pipe never ends.
            left.append(Left(path=each.path, reason=_kind_of(each.status)))
    gone = [path for path in before if path not in here and closed.isdisjoint(above(path))]
    return Survey(changed=changed, gone=gone, left=left)


def _may_differ(was: Seen | None, status: os.stat_result) -> bool:
    return was is None or was != _seen(was.sha256, status)


def _found(entry: Entry) -> Found:
    return Found(path=entry.path, size=entry.status.st_size, modified=entry.status.st_mtime_ns)


def _kind_of(status: os.stat_result) -> str:
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "device")
    return f"It is a {kind}."


def above(path: str) -> list[str]:
    """Return the folders in which a path lies, from the mounted one on."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts))]


def keep(data_dir: Path, folder: Path, path: str) -> Blob:
    """Put what an attempt wrote among the hub's blobs. Raises OSError."""
    with os.fdopen(_open_inside(folder, path), "rb") as file, Spool(data_dir) as spool:
        while data := file.read(_CHUNK):
            spool.write(data)
        return spool.keep()


def _open_inside(folder: Path, path: str) -> int:
    """Open step by step, so that no link on the way is followed."""
    *above, name = path.split("/")
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in above:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = inner
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
    finally:
        os.close(here)
