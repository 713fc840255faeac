"""Folders nested deeper than a path is long."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def nested(folder: Path, depth: int) -> Iterator[None]:
    """Have folders in folders, and a file at the very bottom; the first one may be there."""
    with swept(folder):
        folder.mkdir(exist_ok=True)
        here = os.open(folder, os.O_RDONLY)
        for _ in range(depth):
            os.mkdir("d", dir_fd=here)
            inner = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
        os.close(os.open("bottom", os.O_WRONLY | os.O_CREAT, dir_fd=here))
        os.close(here)
        yield


@contextmanager
def swept(folder: Path) -> Iterator[None]:
    """Leave nothing of a folder to pytest, which could not remove it."""
    try:
        yield
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)
