"""Folders on the disk: removal of a tree that a job may have filled, and atomic creation."""

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from hublet.core.safe_walk import Descent


def remove_tree(folder: Path) -> None:
    """Remove all of it, whatever a job made of it; what is gone already is fine. Blocks.

    Folders that were closed are opened up. What cannot be removed keeps nothing else from it:
    OSError is raised in the end.
    """
    with suppress(FileNotFoundError), closing(Descent(folder.parent)) as descent:
        _TreeRemoval(descent).run(folder.name)


class _TreeRemoval:
    """One folder that is on its way out; at no depth does it call itself."""

    def __init__(self, descent: Descent) -> None:
        self._descent = descent
        self._obstacle: OSError | None = None

    def run(self, name: str) -> None:
        way: list[str] = []
        # For each folder on the way those in it that are still to be emptied.
        left = [[name]]
        while left:
            if not left[-1]:
                left.pop()
                if way:
                    self._descent.leave()
                    self._do(os.rmdir, way.pop())
            elif self._do(self._enter, name := left[-1].pop()):
                way.append(name)
                left.append(self._clear())
        if self._obstacle is not None:
            raise self._obstacle

    def _clear(self) -> list[str]:
        """Remove what is no folder, and what is an empty one; return the others."""
        here = self._descent.here
        with os.scandir(here) as entries:
            kinds = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for name, is_folder in kinds:
            if not is_folder:
                self._do(os.unlink, name)
        return [name for name, is_folder in kinds if is_folder and not _is_removed(name, here)]

    def _enter(self, name: str, *, dir_fd: int) -> None:
        _make_writable(name, above=dir_fd)
        self._descent.enter(name)

    def _do(self, step: Callable[..., object], name: str) -> bool:
        try:
            step(name, dir_fd=self._descent.here)
        except FileNotFoundError:
            return False
        except OSError as error:
            self._obstacle = self._obstacle or error
            return False
        return True


def _is_removed(name: str, above: int) -> bool:
    try:
        os.rmdir(name, dir_fd=above)
    except OSError:
        return False
    return True


def _make_writable(name: str, *, above: int) -> None:
    """Let the owner of a folder do everything in it; for others it stays as it is."""
    folder = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        if os.fstat(folder).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            with suppress(PermissionError):
                # By its number: a closed folder cannot be opened in any other way.
                Path(f"/proc/self/fd/{folder}").chmod(stat.S_IRWXU)
    finally:
        os.close(folder)


FOLDER_MODE = 0o755
_PREFIX = ".incoming-"


@contextmanager
def atomic_dir(target: Path) -> Iterator[Path]:
    """Yield a folder to be filled, which gets its name when the block has ended well.

    Who comes second throws their own away: whatever has the name already is as good.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    incoming = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=target.parent))
    try:
        incoming.chmod(FOLDER_MODE)
        yield incoming
        try:
            incoming.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        with suppress(OSError):
            remove_tree(incoming)
