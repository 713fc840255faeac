"""A part of a test as a hub that is not root."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534
_SET_DUMPABLE = 4


@contextmanager
def not_root(folder: Path, *, except_for: Path | None = None) -> Iterator[None]:
    """Be a user who owns what is in a folder and nothing else; who is not root is that anyway."""
    if os.geteuid():
        yield
        return
    for above in folder.resolve().parents:
        if not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o011)
    for path in {folder, *folder.rglob("*")} - {except_for}:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    # Else /proc would count this process as somebody else's.
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 1, 0, 0, 0)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
