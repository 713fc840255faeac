"""Reflink copies: a job gets a copy of a content that shares its bytes with the source on the disk.

Everything here blocks on the disk; call it from a thread.
"""

import contextlib
import fcntl
import os
import shutil
from pathlib import Path

from hublet.storage.contents import ContentSource
from hublet.storage.object_store import ObjectStore
from hublet.storage.records import Content

# linux/fs.h: two files share their bytes until one of them is written to.
_FICLONE = 0x40049409

FILE_MODE = 0o644
EXECUTABLE_MODE = 0o755


def copy_content(
    store: ObjectStore, content: Content, target: Path, *, mode: int = FILE_MODE
) -> None:
    """Write a content to a new file, sharing its bytes where it lies in one piece here."""
    source = ContentSource(store, content)
    if source.path is not None:
        copy_file(source.path, target, mode=mode)
        return
    with target.open("xb") as file:
        file.writelines(source.pieces(0, content.size))
    target.chmod(mode)


def copy_file(source: Path, target: Path, *, mode: int = FILE_MODE) -> None:
    """Copy a file, sharing its bytes where the file system can.

    Never a hard link: a runner without namespaces lets a job write to all that its user owns,
    and a link would let it write into the hub's own blobs.
    """
    with source.open("rb") as read, target.open("xb") as written:
        try:
            fcntl.ioctl(written.fileno(), _FICLONE, read.fileno())
        except OSError:
            _copy_bytes(read.fileno(), written.fileno())
    target.chmod(mode)


def _copy_bytes(read: int, written: int) -> None:
    left = os.fstat(read).st_size
    with contextlib.suppress(OSError):
        while left > 0 and (count := os.copy_file_range(read, written, left)) > 0:
            left -= count
    if left:
        with (
            os.fdopen(os.dup(read), "rb") as source,
            os.fdopen(os.dup(written), "wb") as target,
        ):
            shutil.copyfileobj(source, target)
