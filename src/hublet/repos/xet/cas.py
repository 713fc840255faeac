"""CAS of one hub process: object store, layouts, and slots for uploads."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hublet.core.database import Database
from hublet.core.errors import HubError, TooManyRequests, Unavailable
from hublet.core.logs import get_logger
from hublet.storage.object_store import ObjectStore, open_store
from hublet.storage.xorb_objects import LayoutCache

log = get_logger("xet")

# A body takes a megabyte of memory or two. A client opens up to 64 connections.
MOST_UPLOADS = 32
MOST_UPLOADS_OF_USER = 16
# Who waits is not read from, and need not send again. Clients give up after some minutes.
PATIENCE_SECONDS = 60.0


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
        self.slots = UploadSlots()
        self.layouts = LayoutCache()
