"""What one worker has claimed and still works on."""

from collections.abc import Iterable
from datetime import timedelta

from hublet.core.clock import micros, monotonic
from hublet.core.database import Database
from hublet.core.queue import leases
from hublet.core.queue.tasks import Task


class Holdings:
    """The claims of one worker. As long as a task is in here, its lease is extended."""

    def __init__(self, database: Database, *, worker: str) -> None:
        self._database = database
        self._worker = worker
        self._seconds = database.hub.settings.worker.lease_seconds
        self._lease = timedelta(seconds=self._seconds)
        self._tasks: set[Task] = set()
        self._kept_at = monotonic()

    async def seconds_until_due(self, *, slow: bool) -> float | None:
        async with self._database.read() as conn:
            due = await leases.next_due(conn, slow=slow)
        return None if due is None else (due - micros()) / 1e6

    async def claim(self, *, slow: bool, limit: int, suspects: bool | None = None) -> list[Task]:
        async with self._database.transaction() as conn:
            if self._silent_for() > self._seconds / 2:
                # The heart missed beats. Without this, what is running here could look
                # abandoned, and would be claimed and run a second time beside itself.
                await leases.extend(conn, self._tasks, lease=self._lease)
            tasks = await leases.claim(
                conn, worker=self._worker, slow=slow, limit=limit, lease=self._lease,
                suspects=suspects,
            )  # fmt: skip
        self._tasks.update(tasks)
        return tasks

    def drop(self, tasks: Iterable[Task]) -> None:
        self._tasks.difference_update(tasks)

    async def keep(self) -> list[Task]:
        """Extend the leases when it is time to; return what was lost to other workers."""
        lost: list[Task] = []
        if self._tasks and self._silent_for() < self._seconds / 3:
            return lost
        if self._tasks:
            async with self._database.transaction() as conn:
                lost = await leases.extend(conn, self._tasks, lease=self._lease)
        self._kept_at = monotonic()
        return lost

    def _silent_for(self) -> float:
        return monotonic() - self._kept_at
