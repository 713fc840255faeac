"""Leases of a worker: extended while it lives, released when they have expired or it stops.

Tasks, deliveries and jobs are leased alike. A claim writes the worker's name and when the lease
expires into the row; `LeaseKeeper` does the rest. A feature brings only its SQL, as a `LeaseStore`.
"""

import asyncio
from collections.abc import Collection
from datetime import timedelta
from typing import Generic, Protocol, TypeVar

from hublet.core.clock import micros, monotonic, offset
from hublet.core.database import Connection, Database, Reader

Held = TypeVar("Held")


def lease_clock() -> int:
    """Return the time of leases in microseconds: the hub's, as if test mode had not moved it.

    A lease expires when its worker was silent for so long; moving the clock makes nobody silent.
    """
    return micros() - offset() // timedelta(microseconds=1)


class LeaseStore(Protocol[Held]):
    """The leases of one worker on one kind of row."""

    async def extend(self, conn: Connection, held: Collection[Held]) -> list[Held]:
        """Extend the leases on what is held; return what is known to be lost to other workers."""

    async def has_expired(self, conn: Reader, held: Collection[Held]) -> bool:
        """Tell whether any lease is to be released, of this worker or of another."""

    async def release_expired(self, conn: Connection, held: Collection[Held]) -> None:
        """Release those leases, but none on what is held."""

    async def release_all(self, conn: Connection) -> int:
        """Make all that this worker has claimed due at once; return how much."""


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
        # Whoever claims under this lock has changed both the database and `held`, or neither,
        # when the leases are extended.
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
