"""Quarantine: folder for the objects of a push until it is accepted, out of git's sight.

Everything here blocks on the disk; call it from a thread.
"""

import shutil
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from hublet.repos.git.packs import sync_folder

_PREFIX = "incoming-"
_ABANDONED_AFTER = timedelta(days=1)


def create(folder: Path) -> Path:
    """Make a folder of objects beside those of a bare repository."""
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=folder / "objects"))


def variables(folder: Path, objects: Path) -> dict[str, str]:
    """Return the variables that let git write here, and read the repository's objects too."""
    # Git takes an unquoted colon for the end of a path.
    escaped = str(folder / "objects").replace("\\", "\\\\").replace('"', '\\"')
    return {
        "GIT_OBJECT_DIRECTORY": str(objects),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{escaped}"',
    }


def accept(folder: Path, objects: Path) -> None:
    """Move the packs into the repository, safe on the disk when this returns."""
    target = folder / "objects" / "pack"
    # An index makes its pack visible, so it comes last.
    for pack in sorted((objects / "pack").glob("pack-*"), key=lambda path: path.suffix == ".idx"):
        pack.replace(target / pack.name)
    sync_folder(target)


def remove(objects: Path) -> None:
    shutil.rmtree(objects, ignore_errors=True)


def clear_abandoned(folder: Path, *, now: datetime) -> None:
    """Remove the folders of pushes whose process died; `now` is the real time of the files."""
    before = (now - _ABANDONED_AFTER).timestamp()
    for left in (folder / "objects").glob(f"{_PREFIX}*"):
        if left.stat().st_mtime < before:
            remove(left)
