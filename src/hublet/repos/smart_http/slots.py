"""How much of git's work one process of the hub does at the same time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hublet.repos.smart_http.errors import GitBusy

# A slot is held for as long as the client takes, so there are more of them than processors.
MOST = 32
PATIENCE_SECONDS = 20.0


class Slots:
    def __init__(self, *, most: int = MOST, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._free = asyncio.Semaphore(most)
        self._patience_seconds = patience_seconds

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Hold a slot; GitBusy when none becomes free soon."""
        try:
            async with asyncio.timeout(self._patience_seconds):
                await self._free.acquire()
        except TimeoutError:
            raise GitBusy from None
        try:
            yield
        finally:
            self._free.release()
