"""Leases of a worker: extended while it lives, released when they have expired or it stops.

Tasks, deliveries and jobs are leased alike. A claim writes the worker's name and when the lease
expires into the row; `LeaseKeeper` does the rest. A feature brings only its SQL, as a `LeaseStore`.
"""

import asyncio
import fcntl
from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from hublet.core.clock import micros, monotonic, offset
from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass

Held = TypeVar("Held")


def lease_clock() -> int:
    """Return the time of leases in microseconds: the hub's, as if test mode had not moved it.

    A lease expires when its worker was silent for its length, which moving the clock does not do.
    """
    return micros() - offset() // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerClaims:
    """What a worker holds of one table, and when its first lease ends, on the clock of leases."""

    worker: str
    count: int
    lease_ends: int


class LeaseStore(Protocol[Held]):
    """The leases of one worker on one kind of row."""

    async def extend(self, conn: Connection, held: Collection[Held], /) -> list[Held]:
        """Extend the leases on what is held; return what is known to be lost to other workers."""
        ...

    async def has_expired(self, conn: Reader, held: Collection[Held], /) -> bool:
        """Tell whether any lease is to be released, of this worker or of another."""
        ...

    async def release_expired(self, conn: Connection, held: Collection[Held], /) -> None:
        """Release those leases, but none on what is held."""

    async def release_all(self, conn: Connection, /) -> int:
        """Make all that this worker has claimed due at once; return how much."""
        ...


class LeaseKeeper(Generic[Held]):
    """Keeps the leases of one worker on what it holds.

    `held` belongs to the feature, which adds what it has claimed and removes what has ended.
    """

    def __init__(
        self,
        database: Database,
        store: LeaseStore[Held],
        held: Collection[Held],
        *,
        interval_seconds: float,
    ) -> None:
        self._database = database
        self._store = store
        self._held = held
        self._interval_seconds = interval_seconds
        self._extended_at = monotonic()
        # A claim under this lock changes the database and `held` together: leases are extended
        # before or after it, never in between.
        self.lock = asyncio.Lock()

    @property
    def silent_seconds(self) -> float:
        """How long ago the leases were extended last."""
        return monotonic() - self._extended_at

    async def extend_when_due(self) -> list[Held]:
        """Do what `extend` does if its interval has passed; to be called every few seconds."""
        return await self.extend() if self.silent_seconds >= self._interval_seconds else []

    async def extend(self) -> list[Held]:
        """Extend the leases on what is held, then release those that have expired.

        One of our own may be among these, when a commit was kept of which we never heard.
        Returns what is known to be lost to other workers.
        """
        lost: list[Held] = []
        async with self.lock:
            if self._held:
                async with self._database.transaction() as conn:
                    lost = await self._store.extend(conn, self._held)
            async with self._database.read() as reader:
                has_expired = await self._store.has_expired(reader, self._held)
            if has_expired:
                async with self._database.transaction() as conn:
                    await self._store.release_expired(conn, self._held)
        self._extended_at = monotonic()
        return lost

    async def hand_back(self, conn: Connection) -> int:
        """Make everything this worker has claimed due for others; return how much."""
        return await self._store.release_all(conn)


class WorkerPresence:
    """Which workers of this data folder are alive, so that no lease of a dead one is waited for.

    A file per worker is locked for as long as its process lives: the operating system releases
    the lock however the process ends. Workers on other machines are not seen here; their leases
    expire instead.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        self._folder = folder
        self._worker = worker
        folder.mkdir(parents=True, exist_ok=True)
        # The other workers ignore hidden names. Visible and unlocked even for a moment, the file
        # would look like that of a dead worker.
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
        """Remove the file: nothing is left to be taken over."""
        self.forget(self._worker)
        self._file.close()

    def vanish(self) -> None:
        """Only unlock the file, as a dying worker does: the others find it and take its work over."""
        self._file.close()


def _is_unlocked(path: Path) -> bool:
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
