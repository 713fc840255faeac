"""Reflink copies: a job gets a copy of a file that shares its bytes with the source on the disk.

Everything here blocks on the disk; call it from a thread.
"""

import contextlib
import fcntl
import os
import shutil
from pathlib import Path

# linux/fs.h: two files share their bytes until one of them is written to.
_FICLONE = 0x40049409

FILE_MODE = 0o644
EXECUTABLE_MODE = 0o755


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
