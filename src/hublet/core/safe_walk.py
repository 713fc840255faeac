"""Safe walk through folders with hostile content, which a job may have written, at any depth."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from hublet.core.dataclasses import dataclass

# What is nested deeper is left out: those who copy folders, or hand them over, call themselves.
MAX_DEPTH = 255
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkedFile:
    """Whatever is no folder. Its path begins below the folder that is walked."""

    path: str
    status: os.stat_result


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableFolder:
    """A folder that was not looked into; the path of the one that is walked is empty."""

    path: str
    # A sentence.
    reason: str


class Descent:
    """One folder that is open, and the way back to the first one."""

    def __init__(self, first: Path) -> None:
        self.here = os.open(first, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._above: list[tuple[int, int]] = []

    def enter(self, name: str) -> None:
        inner = os.open(name, os.O_RDONLY | _FOLDER, dir_fd=self.here)
        try:
            # Where nothing can be looked up there is no way back either.
            os.stat(".", dir_fd=inner)
        except OSError:
            os.close(inner)
            raise
        self._above.append(_identity(self.here))
        self._go(inner)

    def leave(self) -> None:
        above = os.open("..", os.O_RDONLY | _FOLDER, dir_fd=self.here)
        if _identity(above) != self._above.pop():
            os.close(above)
            raise OSError(errno.ESTALE, "A folder was moved away while it was walked")
        self._go(above)

    def _go(self, folder: int) -> None:
        os.close(self.here)
        self.here = folder

    def close(self) -> None:
        os.close(self.here)


def _identity(folder: int) -> tuple[int, int]:
    status = os.fstat(folder)
    return status.st_dev, status.st_ino


def walk(folder: Path) -> Iterator[WalkedFile | UnreadableFolder]:
    """Yield what is below a folder: first what is in it, then what is in the folders in it.

    Folders that are not open to the hub, or that are nested too deeply, are told of. Raises OSError.
    """
    way: list[str] = []
    # For each folder on the way those in it that are still to be walked, the next one last.
    left = [[folder.name]]
    with closing(Descent(folder.parent)) as descent:
        while left:
            if left[-1]:
                name = left[-1].pop()
                if reason := _try_to_enter(descent, name, depth=len(way)):
                    yield UnreadableFolder(path="/".join((*way, name)[1:]), reason=reason)
                    continue
                way.append(name)
                entries, folders = _list_folder(descent.here)
                for entry, status in entries:
                    yield WalkedFile(path="/".join((*way[1:], entry)), status=status)
                left.append(folders)
                continue
            left.pop()
            if way:
                way.pop()
                descent.leave()


def _try_to_enter(descent: Descent, name: str, *, depth: int) -> str | None:
    """Return why that is not possible, None when it was."""
    if depth > MAX_DEPTH:
        return f"Folders may be nested {MAX_DEPTH} deep."
    try:
        descent.enter(name)
    except PermissionError as error:
        return f"It cannot be read: {error.strerror}."
    return None


def _list_folder(folder: int) -> tuple[list[tuple[str, os.stat_result]], list[str]]:
    """Return what is in a folder by name, and the names of the folders in it from the last one."""
    entries: list[tuple[str, os.stat_result]] = []
    folders: list[str] = []
    for name in sorted(os.listdir(folder)):
        with suppress(FileNotFoundError):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                folders.append(name)
            else:
                entries.append((name, status))
    return entries, folders[::-1]
