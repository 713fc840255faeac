"""Lanes of a worker: quick tasks share a transaction, slow tasks run concurrently without one."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractContextManager, suppress
from typing import Any

from hublet.core.batching import GroupCommit
from hublet.core.clock import monotonic
from hublet.core.database import Connection, Database, DatabaseUnavailable
from hublet.core.logs import get_logger, redact_text
from hublet.core.queue import claims
from hublet.core.queue.leases import TaskLeases
from hublet.core.queue.tasks import Task, TaskHandler, decode, handlers
from hublet.core.retries import is_being_cancelled, retry
from hublet.core.tracing import span

log = get_logger("worker")

# The text of an error may be as long as what it complains about.
_ERROR_CHARACTERS = 2000
# The search for suspects reads the whole backlog, so it is not made after every batch.
_SUSPECTS_SECONDS = 1.0


def task_span(task: Task) -> AbstractContextManager[Any]:
    """Trace one attempt of a task as a part of what caused it."""
    return span(f"task {task.kind}", parent=task.trace, task=task.id, attempt=task.attempts)


def get_handler(task: Task, *, max_attempts: int) -> TaskHandler:
    if task.attempts > max_attempts:
        raise RuntimeError("The worker died each time it ran this task.")
    if (handler := handlers.get(task.kind)) is None:
        raise LookupError(f"This version has no handler for {task.kind}.")
    return handler


async def record_failure(
    conn: Connection, task: Task, error: BaseException, *, max_attempts: int, broke: bool = False
) -> None:
    text = _error_text(error)
    log.warning("task failed", task=task.id, kind=task.kind, error=text, exc_info=error)
    await claims.fail(conn, task, error=text, max_attempts=max_attempts, broke=broke)


def _error_text(error: BaseException) -> str:
    # An error that cannot even be printed must not take its neighbours along.
    with suppress(Exception):
        reason = error.reason if isinstance(error, DatabaseUnavailable) else str(error)
        return redact_text(f"{type(error).__name__}: {reason}"[:_ERROR_CHARACTERS])
    return type(error).__name__


def log_failure(error: BaseException) -> None:
    """Log what went wrong in the worker itself."""
    if isinstance(error, DatabaseUnavailable):
        log.warning("database unavailable", reason=error.reason)
    else:
        log.error("the worker stumbled", exc_info=error)


def log_lease_lost(task: Task) -> None:
    log.warning("lease lost", task=task.id, kind=task.kind)


class LeaseLost(Exception):
    """Another worker has claimed the task; what was done for it here is rolled back."""


class QuickLane:
    """Runs quick tasks in batches, each batch in one transaction."""

    def __init__(self, database: Database, leases: TaskLeases) -> None:
        self._database = database
        self._settings = database.hub.settings.worker
        self._leases = leases
        self._suspects_sought_at = monotonic()

    async def seconds_until_due(self) -> float | None:
        return await self._leases.seconds_until_due(slow=False)

    async def step(self) -> int:
        """Run a batch in one transaction, then perhaps a suspect in one of its own; return how many."""
        size = self._settings.batch_size
        batch = await self._leases.claim(slow=False, limit=size, suspects=False)
        await self._run_together(batch)
        overdue = monotonic() - self._suspects_sought_at > _SUSPECTS_SECONDS
        if len(batch) == size and not overdue:
            return size
        self._suspects_sought_at = monotonic()
        return await self._run_a_suspect() + len(batch)

    async def _run_a_suspect(self) -> int:
        async with self._database.read() as conn:
            if not await claims.is_suspect_due(conn):
                return 0
        alone = await self._leases.claim(slow=False, limit=1, suspects=True)
        await self._run_together(alone)
        return len(alone)

    async def _run_together(self, tasks: list[Task]) -> None:
        """Run tasks in one transaction; when one of them fails, each in a savepoint of its own."""
        try:
            failed = await self._run_without_savepoints(tasks) if len(tasks) > 1 else {}
            if failed is not None:
                await self._run_with_savepoints(tasks, failed)
        except Exception as error:
            with suppress(DatabaseUnavailable):
                await self._release(tasks, error)
            raise
        finally:
            self._leases.drop(tasks)

    async def _run_without_savepoints(self, tasks: list[Task]) -> dict[str, BaseException] | None:
        """Run tasks as if none could fail; None when none did.

        Else nothing of them was kept, and the one that failed is returned with its error. On
        PostgreSQL the savepoint and the end of each task would take longer than most tasks.
        """
        failed: dict[str, BaseException] = {}
        limit = asyncio.timeout(self._settings.lease_seconds)
        try:
            async with limit, self._database.transaction() as conn:
                for task in tasks:
                    await self._handle_or_record_failure(conn, task, failed)
                await self._finish_together(conn, tasks)
        except (Exception, asyncio.CancelledError):
            if is_being_cancelled() and not limit.expired():
                raise
            # The one that ran when the time was up may only have come last.
            return {} if limit.expired() else failed
        return None

    async def _handle_or_record_failure(
        self, conn: Connection, task: Task, failed: dict[str, BaseException]
    ) -> None:
        handler = get_handler(task, max_attempts=self._settings.max_attempts)
        if handler.slow:
            raise LookupError(f"{task.kind} belongs to the slow lane.")
        try:
            with task_span(task):
                await handler.run(conn, decode(handler, task.body))
        except BaseException as error:
            failed[task.id] = error
            raise

    async def _finish_together(self, conn: Connection, tasks: list[Task]) -> None:
        if not await claims.finish_all(conn, tasks, worker=tasks[0].claimed_by):
            raise LeaseLost

    async def _run_with_savepoints(
        self, tasks: list[Task], failed: dict[str, BaseException]
    ) -> None:
        """Run tasks each in a savepoint; those that have failed just now are not run again."""
        async with self._database.transaction() as conn:
            for task in tasks:
                if (error := failed.get(task.id)) is not None:
                    await self._fail(conn, task, error)
                else:
                    await self._run(conn, task)

    async def _release(self, tasks: list[Task], error: Exception) -> None:
        """Release what was rolled back; each is run alone next, and only the culprit fails."""
        async with self._database.transaction() as conn:
            if len(tasks) == 1:
                await self._fail(conn, tasks[0], error, broke=True)
            else:
                await claims.release(conn, tasks, counted=True)

    async def _run(self, conn: Connection, task: Task) -> None:
        try:
            async with conn.savepoint(), asyncio.timeout(self._settings.lease_seconds):
                await self._handle(conn, task)
        except LeaseLost:
            log_lease_lost(task)
        except (Exception, asyncio.CancelledError) as error:
            if is_being_cancelled():
                raise
            await self._fail(conn, task, error)

    async def _handle(self, conn: Connection, task: Task) -> None:
        handler = get_handler(task, max_attempts=self._settings.max_attempts)
        if handler.slow:
            await claims.move_to_lane(conn, task, slow=True)
            return
        with task_span(task):
            await handler.run(conn, decode(handler, task.body))
        if not await claims.finish(conn, task):
            raise LeaseLost

    async def _fail(
        self, conn: Connection, task: Task, error: BaseException, *, broke: bool = False
    ) -> None:
        await record_failure(
            conn, task, error, max_attempts=self._settings.max_attempts, broke=broke
        )


class SlowLane:
    """Runs slow tasks concurrently, without a transaction; only their ends are written in one."""

    def __init__(self, database: Database, leases: TaskLeases) -> None:
        self._database = database
        self._settings = database.hub.settings.worker
        self._leases = leases
        self._endings = GroupCommit(database)
        self._running: dict[asyncio.Task[None], Task] = {}
        self._stopping = False

    async def seconds_until_due(self) -> float | None:
        if len(self._running) >= self._settings.concurrency:
            await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        return await self._leases.seconds_until_due(slow=True)

    async def step(self) -> int:
        """Start as many as there is room for; return how many."""
        room = self._settings.concurrency - len(self._running)
        tasks = await self._leases.claim(slow=True, limit=room)
        if self._stopping:
            return len(tasks)  # They are not begun any more, and the worker hands them back.
        for task in tasks:
            running = asyncio.create_task(self._run(task), name=task.kind)
            self._running[running] = task
            running.add_done_callback(self._on_done)
        return len(tasks)

    async def finish(self) -> None:
        """Start nothing more, and wait for what is running."""
        self._stopping = True
        if self._running:
            await asyncio.wait(self._running)

    async def abandon(self) -> None:
        """Cancel what is still running."""
        running = list(self._running)
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._endings.settled()

    def drop(self, lost: Collection[Task]) -> None:
        """Cancel what another worker has claimed."""
        for running, task in self._running.items():
            if task in lost:
                log_lease_lost(task)
                running.cancel()

    def _on_done(self, running: asyncio.Task[None]) -> None:
        del self._running[running]
        if not running.cancelled() and (error := running.exception()) is not None:
            log_failure(error)

    async def _run(self, task: Task) -> None:
        try:
            await self._write(await self._ending_of(task))
        finally:
            self._leases.drop([task])

    async def _ending_of(self, task: Task) -> Callable[[Connection], Awaitable[None]]:
        """Run the handler; return the write that records its end."""
        most = self._settings.max_attempts
        try:
            handler = get_handler(task, max_attempts=most)
            if not handler.slow:
                return lambda conn: claims.move_to_lane(conn, task, slow=False)
            with task_span(task):
                await handler.run(self._database, decode(handler, task.body))
        except (Exception, asyncio.CancelledError) as error:
            if is_being_cancelled():
                raise
            failure = error
            return lambda conn: record_failure(conn, task, failure, max_attempts=most)
        return lambda conn: _finish(conn, task)

    async def _write(self, ending: Callable[[Connection], Awaitable[None]]) -> None:
        """Retry until it is written: what was done on the network must not be done again."""
        await retry(
            lambda: self._endings.run(ending), log_failure=log_failure, on=DatabaseUnavailable
        )


async def _finish(conn: Connection, task: Task) -> None:
    if not await claims.finish(conn, task):
        log_lease_lost(task)
