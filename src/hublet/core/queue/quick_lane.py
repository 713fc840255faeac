"""Quick tasks: many to a transaction, in which they also end."""

import asyncio
from contextlib import suppress

from hublet.core.cancellation import is_being_cancelled
from hublet.core.clock import monotonic
from hublet.core.database import Connection, Database, DatabaseUnavailable
from hublet.core.queue import leases
from hublet.core.queue.handlers import decode
from hublet.core.queue.holdings import Holdings
from hublet.core.queue.running import handler_of, tell_lost, write_failure
from hublet.core.queue.tasks import Task

# Behind a long backlog the search for suspects reads all of it.
_SUSPECTS_SECONDS = 1.0


class LeaseLost(Exception):
    """Another worker has taken the task over; what was done for it here is undone."""


class QuickLane:
    def __init__(self, database: Database, holdings: Holdings) -> None:
        self._database = database
        self._settings = database.hub.settings.worker
        self._holdings = holdings
        self._suspects_sought_at = monotonic()

    async def seconds_until_due(self) -> float | None:
        return await self._holdings.seconds_until_due(slow=False)

    async def step(self) -> bool:
        """Run a batch in one transaction, then perhaps a suspect in one of its own."""
        size = self._settings.batch_size
        batch = await self._holdings.claim(slow=False, limit=size, suspects=False)
        await self._run_together(batch)
        overdue = monotonic() - self._suspects_sought_at > _SUSPECTS_SECONDS
        if len(batch) == size and not overdue:
            return True
        self._suspects_sought_at = monotonic()
        return await self._run_a_suspect() or bool(batch)

    async def _run_a_suspect(self) -> bool:
        async with self._database.read() as conn:
            if not await leases.is_suspect_due(conn):
                return False
        alone = await self._holdings.claim(slow=False, limit=1, suspects=True)
        await self._run_together(alone)
        return bool(alone)

    async def _run_together(self, tasks: list[Task]) -> None:
        """Run tasks in one transaction; when one of them fails, each in a savepoint of its own."""
        try:
            failed = await self._run_trusting(tasks) if len(tasks) > 1 else {}
            if failed is not None:
                await self._run_with_care(tasks, failed)
        except Exception as error:
            with suppress(DatabaseUnavailable):
                await self._put_back(tasks, error)
            raise
        finally:
            self._holdings.drop(tasks)

    async def _run_trusting(self, tasks: list[Task]) -> dict[str, BaseException] | None:
        """Run tasks as if none could fail; None when none did.

        Else nothing of them was kept, and the one that failed is returned with its error. On
        PostgreSQL the savepoint and the end of each task would take longer than most tasks.
        """
        failed: dict[str, BaseException] = {}
        limit = asyncio.timeout(self._settings.lease_seconds)
        try:
            async with limit, self._database.transaction() as conn:
                for task in tasks:
                    await self._handle_noting(conn, task, failed)
                await self._finish_together(conn, tasks)
        except (Exception, asyncio.CancelledError):
            if is_being_cancelled() and not limit.expired():
                raise
            # Whoever ran when the time was up may only have come last.
            return {} if limit.expired() else failed
        return None

    async def _handle_noting(
        self, conn: Connection, task: Task, failed: dict[str, BaseException]
    ) -> None:
        handler = handler_of(task, max_attempts=self._settings.max_attempts)
        if handler.slow:
            raise LookupError(f"{task.kind} belongs to the slow lane.")
        try:
            await handler.run(conn, decode(handler, task.body))
        except BaseException as error:
            failed[task.id] = error
            raise

    async def _finish_together(self, conn: Connection, tasks: list[Task]) -> None:
        if not await leases.finish_all(conn, tasks, worker=tasks[0].claimed_by):
            raise LeaseLost

    async def _run_with_care(self, tasks: list[Task], failed: dict[str, BaseException]) -> None:
        """Run tasks each in a savepoint; those that have failed just now are not run again."""
        async with self._database.transaction() as conn:
            for task in tasks:
                if (error := failed.get(task.id)) is not None:
                    await self._fail(conn, task, error)
                else:
                    await self._run(conn, task)

    async def _put_back(self, tasks: list[Task], error: Exception) -> None:
        """Nothing of them was kept; each is run alone now, and only the one to blame fails."""
        async with self._database.transaction() as conn:
            if len(tasks) == 1:
                await self._fail(conn, tasks[0], error, broke=True)
            else:
                await leases.hand_back(conn, tasks, counted=True)

    async def _run(self, conn: Connection, task: Task) -> None:
        try:
            async with conn.savepoint(), asyncio.timeout(self._settings.lease_seconds):
                await self._handle(conn, task)
        except LeaseLost:
            tell_lost(task)
        except (Exception, asyncio.CancelledError) as error:
            if is_being_cancelled():
                raise
            await self._fail(conn, task, error)

    async def _handle(self, conn: Connection, task: Task) -> None:
        handler = handler_of(task, max_attempts=self._settings.max_attempts)
        if handler.slow:
            await leases.move(conn, task, slow=True)
            return
        await handler.run(conn, decode(handler, task.body))
        if not await leases.finish(conn, task):
            raise LeaseLost

    async def _fail(
        self, conn: Connection, task: Task, error: BaseException, *, broke: bool = False
    ) -> None:
        await write_failure(
            conn, task, error, max_attempts=self._settings.max_attempts, broke=broke
        )
