"""Buckets as folders: what an attempt is handed, and what it made of that.

Everything here blocks on the disk; call it from a thread.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from hublet.jobs.volumes.copying import copy
from hublet.jobs.volumes.records import Found, Handed, Seen
from hublet.repos.blobs.folder import Spool
from hublet.repos.blobs.records import Blob

_CHUNK = 1 << 20
# A job may not be the hub's own user; nobody else gets as far as this folder.
_OPEN_FILE = 0o666
_OPEN_FOLDER = 0o777

# By path: the digest of a file, and where its bytes lie.
Contents = Mapping[str, tuple[str, Path]]


def fill(folder: Path, files: Contents) -> dict[str, Seen]:
    """Put files below a new folder; return each as it is now."""
    _make_folder(folder)
    seen: dict[str, Seen] = {}
    for path, (sha256, content) in files.items():
        target = folder / path
        for above in reversed(target.relative_to(folder).parents):
            _make_folder(folder / above)
        copy(content, target, mode=_OPEN_FILE)
        seen[path] = _seen(sha256, target.lstat())
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
    path.write_bytes(msgspec.json.encode(handed))


def find_note(path: Path) -> Handed | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Handed)
    except FileNotFoundError:
        return None


def changed_since(folder: Path, before: Mapping[str, Seen]) -> Iterator[Found]:
    """Yield the files that may have another content than they had; others cannot."""
    for path, status in _files(folder):
        was = before.get(path)
        if was is None or was != _seen(was.sha256, status):
            yield Found(path=path, size=status.st_size, modified=status.st_mtime_ns)


def gone_since(folder: Path, before: Mapping[str, Seen]) -> list[str]:
    here = {path for path, _ in _files(folder)}
    return [path for path in before if path not in here]


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield regular files only: a link may lead out of the folder, and a pipe never ends."""
    for above, _, names, descriptor in os.fwalk(folder, follow_symlinks=False):
        inside = os.path.relpath(above, folder)
        for name in sorted(names):
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                yield name if inside == "." else f"{inside}/{name}", status


def keep(data_dir: Path, folder: Path, path: str) -> Blob:
    """Put what an attempt wrote among the hub's blobs."""
    with Spool(data_dir) as spool:
        descriptor = _open_inside(folder, path)
        with os.fdopen(descriptor, "rb") as file:
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
