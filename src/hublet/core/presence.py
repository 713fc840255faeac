"""Presence of workers: which of this data folder are alive, so that a dead one's work waits for no
lease.
"""

import fcntl
from pathlib import Path


class WorkerPresence:
    """A file per worker, locked for as long as its process lives.

    The operating system lets go of the lock however the process ends. Workers on other
    machines are not seen here; their leases run out instead.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        self._folder = folder
        self._worker = worker
        folder.mkdir(parents=True, exist_ok=True)
        # Under the hidden name nobody looks at it. Shown unlocked even for a moment, it
        # could be taken for the file of a dead worker.
        hidden = folder / f".{worker}"
        self._file = hidden.open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        hidden.rename(folder / worker)

    def dead_workers(self) -> list[str]:
        return [
            path.name
            for path in sorted(self._folder.iterdir())
            if path.name != self._worker and not path.name.startswith(".") and _is_unlocked(path)
        ]

    def forget(self, worker: str) -> None:
        (self._folder / worker).unlink(missing_ok=True)

    def leave(self) -> None:
        """Go without a trace: nothing is left to be taken over."""
        self.forget(self._worker)
        self._file.close()

    def vanish(self) -> None:
        """Go as a dead worker does: the others find the file and take its work over."""
        self._file.close()


def _is_unlocked(path: Path) -> bool:
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
