"""Slow tasks: beside each other, without a transaction, ended by a write of their own."""

import asyncio
from collections.abc import Awaitable, Callable, Collection

from hublet.core.batching import GroupCommit
from hublet.core.cancellation import is_being_cancelled
from hublet.core.database import Connection, Database, DatabaseUnavailable
from hublet.core.queue import leases
from hublet.core.queue.handlers import decode
from hublet.core.queue.holdings import Holdings
from hublet.core.queue.running import handler_of, tell, tell_lost, write_failure
from hublet.core.queue.tasks import Task

_BACK_OFF_SECONDS = 0.5


class SlowLane:
    def __init__(self, database: Database, holdings: Holdings) -> None:
        self._database = database
        self._settings = database.hub.settings.worker
        self._holdings = holdings
        self._endings = GroupCommit(database)
        self._running: dict[asyncio.Task[None], Task] = {}
        self._stopping = False

    async def seconds_until_due(self) -> float | None:
        if len(self._running) >= self._settings.concurrency:
            await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        return await self._holdings.seconds_until_due(slow=True)

    async def step(self) -> bool:
        """Start as many as there is room for."""
        room = self._settings.concurrency - len(self._running)
        tasks = await self._holdings.claim(slow=True, limit=room)
        if self._stopping:
            return True  # They are not begun any more, and the worker hands them back.
        for task in tasks:
            running = asyncio.create_task(self._run(task), name=task.kind)
            self._running[running] = task
            running.add_done_callback(self._forget)
        return bool(tasks)

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
        """Stop working on what another worker has taken over."""
        for running, task in self._running.items():
            if task in lost:
                tell_lost(task)
                running.cancel()

    def _forget(self, running: asyncio.Task[None]) -> None:
        del self._running[running]
        if not running.cancelled() and (error := running.exception()) is not None:
            tell(error)

    async def _run(self, task: Task) -> None:
        try:
            await self._write(await self._ending_of(task))
        finally:
            self._holdings.drop([task])

    async def _ending_of(self, task: Task) -> Callable[[Connection], Awaitable[None]]:
        """Run the handler and return what is to be written about it."""
        most = self._settings.max_attempts
        try:
            handler = handler_of(task, max_attempts=most)
            if not handler.slow:
                return lambda conn: leases.move(conn, task, slow=False)
            await handler.run(self._database, decode(handler, task.body))
        except (Exception, asyncio.CancelledError) as error:
            if is_being_cancelled():
                raise
            failure = error
            return lambda conn: write_failure(conn, task, failure, max_attempts=most)
        return lambda conn: _finish(conn, task)

    async def _write(self, ending: Callable[[Connection], Awaitable[None]]) -> None:
        """Insist, because what was done on the network must not be done again for want of it."""
        while True:
            try:
                return await self._endings.run(ending)
            except DatabaseUnavailable as error:
                tell(error)
                await asyncio.sleep(_BACK_OFF_SECONDS)


async def _finish(conn: Connection, task: Task) -> None:
    if not await leases.finish(conn, task):
        tell_lost(task)
