"""CAS of one hub process: object store, worker processes, layouts, and slots for uploads."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager
from typing import Any, ParamSpec, TypeVar

from hublet.core.database import Database
from hublet.core.errors import HubError, TooManyRequests, Unavailable
from hublet.core.logs import get_logger
from hublet.storage.layouts import LayoutCache
from hublet.storage.object_store import ObjectStore, open_store
from hublet.storage.verification import worker_processes

log = get_logger("xet")

_INTERRUPTED = "The verification of this upload was interrupted; send it again."

# A body takes a megabyte of memory or two. A client opens up to 64 connections.
MOST_UPLOADS = 32
MOST_UPLOADS_OF_USER = 16
# Who waits is not read from, and need not send again. Clients give up after some minutes.
PATIENCE_SECONDS = 60.0

_P = ParamSpec("_P")
_T = TypeVar("_T")


class VerificationWorkers:
    """Processes for verification, started when first needed, as many as there are processors.

    Whoever reads gigabytes has other processes than whoever reads a xorb, and does not hold it up.
    """

    def __init__(self) -> None:
        self._count = len(os.sched_getaffinity(0))
        self._pools: dict[bool, ProcessPoolExecutor] = {}
        self._is_stopped = False

    async def run(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await self._run(function, args, kwargs, is_long=False)

    async def run_long(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run what may take minutes."""
        return await self._run(function, args, kwargs, is_long=True)

    async def _run(
        self, function: Callable[..., _T], args: Any, kwargs: Any, *, is_long: bool
    ) -> _T:
        pool = self._pool(is_long=is_long)
        try:
            # The first call waits for a process to start.
            call: Future[_T] = await asyncio.to_thread(pool.submit, function, *args, **kwargs)
            return await asyncio.wrap_future(call)
        except BrokenProcessPool:
            # A process was killed, perhaps for want of memory; the next call gets new ones.
            log.warning("verification broken", function=function.__name__)
            if self._pools.get(is_long) is pool:
                del self._pools[is_long]
            pool.shutdown(wait=False)
            raise Unavailable(_INTERRUPTED) from None

    def _pool(self, *, is_long: bool) -> ProcessPoolExecutor:
        if self._is_stopped:
            raise Unavailable(_INTERRUPTED)
        if is_long not in self._pools:
            self._pools[is_long] = worker_processes(self._count)
        return self._pools[is_long]

    async def stop(self) -> None:
        self._is_stopped = True
        pools = list(self._pools.values())
        self._pools.clear()
        for pool in pools:
            # What they verify is not acknowledged yet, and is sent again.
            for process in list((pool._processes or {}).values()):  # noqa: SLF001 - no public way
                process.terminate()
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)


def _too_many() -> TooManyRequests:
    return TooManyRequests("Too many of your uploads are on the way.", headers={"Retry-After": "1"})


class UploadSlots:
    """Slots for uploads that are on the way at the same time, of each user and of all."""

    def __init__(
        self,
        *,
        most: int = MOST_UPLOADS,
        most_of_user: int = MOST_UPLOADS_OF_USER,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._all = asyncio.Semaphore(most)
        self._most_of_user = most_of_user
        self._patience_seconds = patience_seconds
        # By user, with how many hold or await one.
        self._users: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def one(self, user_id: str) -> AsyncIterator[None]:
        """Hold a slot; raise when none becomes free soon."""
        own = self._enter(user_id)
        try:
            await self._acquire(own, _too_many())
            try:
                await self._acquire(self._all, Unavailable("Too many uploads are on the way."))
                try:
                    yield
                finally:
                    self._all.release()
            finally:
                own.release()
        finally:
            self._leave(user_id)

    async def _acquire(self, slots: asyncio.Semaphore, refusal: HubError) -> None:
        try:
            async with asyncio.timeout(self._patience_seconds):
                await slots.acquire()
        except TimeoutError:
            raise refusal from None

    def _enter(self, user_id: str) -> asyncio.Semaphore:
        own, count = self._users.get(user_id, (asyncio.Semaphore(self._most_of_user), 0))
        self._users[user_id] = own, count + 1
        return own

    def _leave(self, user_id: str) -> None:
        own, count = self._users[user_id]
        if count == 1:
            del self._users[user_id]
        else:
            self._users[user_id] = own, count - 1


class Cas:
    """What all requests to the CAS of one process share."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.store: ObjectStore = open_store(database.hub.settings)
        self.workers = VerificationWorkers()
        self.slots = UploadSlots()
        self.layouts = LayoutCache()

    async def stop(self) -> None:
        await self.workers.stop()
