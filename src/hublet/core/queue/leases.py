"""Leases of one worker on tasks: what it has claimed is extended until it ends."""

from collections.abc import Collection, Iterable
from datetime import timedelta

from hublet.core.clock import micros
from hublet.core.database import Connection, Database, Reader
from hublet.core.leases import LeaseKeeper
from hublet.core.queue import claims
from hublet.core.queue.tasks import Task


class TaskLeaseStore:
    """Leases of one worker on tasks, as `LeaseKeeper` wants them."""

    def __init__(self, *, worker: str, lease: timedelta) -> None:
        self._worker = worker
        self._lease = lease

    async def extend(self, conn: Connection, held: Collection[Task]) -> list[Task]:
        return await claims.extend(conn, held, lease=self._lease)

    async def has_expired(self, _conn: Reader, _held: Collection[Task]) -> bool:
        """Nothing is ever to be released: a task whose lease has expired is simply due again."""
        return False

    async def release_expired(self, conn: Connection, held: Collection[Task]) -> None:
        pass

    async def release_all(self, conn: Connection) -> int:
        return await claims.release_all(conn, worker=self._worker)


class TaskLeases:
    """Claims of one worker on tasks, whose leases are extended as long as the tasks are held."""

    def __init__(self, database: Database, *, worker: str) -> None:
        self._database = database
        self._worker = worker
        self._seconds = database.hub.settings.worker.lease_seconds
        self._lease = timedelta(seconds=self._seconds)
        self._held: set[Task] = set()
        self.keeper = LeaseKeeper(
            database,
            TaskLeaseStore(worker=worker, lease=self._lease),
            self._held,
            interval_seconds=self._seconds / 3,
        )

    async def seconds_until_due(self, *, slow: bool) -> float | None:
        async with self._database.read() as conn:
            due = await claims.next_due(conn, slow=slow)
        return None if due is None else (due - micros()) / 1e6

    async def claim(self, *, slow: bool, limit: int, suspects: bool | None = None) -> list[Task]:
        async with self._database.transaction() as conn:
            if self.keeper.silent_seconds > self._seconds / 2:
                # The heart missed beats. Without this, what is running here could look
                # abandoned, and would be claimed and run a second time beside itself.
                await claims.extend(conn, self._held, lease=self._lease)
            tasks = await claims.claim(
                conn, worker=self._worker, slow=slow, limit=limit, lease=self._lease,
                suspects=suspects,
            )  # fmt: skip
        self._held.update(tasks)
        return tasks

    def drop(self, tasks: Iterable[Task]) -> None:
        """Extend the leases on these no longer: they have ended."""
        self._held.difference_update(tasks)
