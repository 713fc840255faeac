"""Looks for deliveries to take, as soon as there are some and as long as there is room."""

import asyncio
from collections.abc import Callable

from hublet.core.cancellation import is_being_cancelled
from hublet.core.clock import micros, monotonic
from hublet.core.database import Database, Reader, Subscription
from hublet.webhooks.delivery.claims import store
from hublet.webhooks.delivery.claims.records import Taken
from hublet.webhooks.delivery.claims.taking import BATCH, take_due, take_fresh
from hublet.webhooks.delivery.lanes import Lanes
from hublet.webhooks.delivery.targets import store as lane_rows
from hublet.webhooks.delivery.telling import tell
from hublet.webhooks.records import DELIVERIES

_BACK_OFF_SECONDS = 0.5
# What is due and yet cannot be taken is just being taken by another worker.
_OTHERS_WERE_FASTER_SECONDS = 0.02
_FULL_SECONDS = 0.02


class Intake:
    """Takes for one worker; `receive` hears of what was taken, once that is committed."""

    def __init__(
        self, database: Database, lanes: Lanes, *, worker: str, receive: Callable[[Taken], None]
    ) -> None:
        self._database = database
        self._lanes = lanes
        self._worker = worker
        self._receive = receive
        self._poll = database.hub.settings.worker.poll_seconds
        self._bell: Subscription | None = None
        self._loop: asyncio.Task[None] | None = None
        self._stopping = False
        self._took_at = 0.0
        self.is_taking = False

    @property
    def rings(self) -> int:
        """Differs whenever this process may have committed something about webhooks."""
        return 0 if self._bell is None else self._bell.rings

    def start(self) -> None:
        self._loop = asyncio.create_task(self._take_always(), name="webhook-taking")

    def look(self) -> None:
        """There may be something to take, or room for it."""
        if self._bell is not None:
            self._bell.ring()

    async def finish(self) -> None:
        """Take nothing more."""
        self._stopping = True
        self.look()
        if self._loop is not None:
            await asyncio.wait([self._loop])

    async def abandon(self) -> None:
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)

    async def is_empty(self, conn: Reader) -> bool:
        """Tell whether nothing could be taken now."""
        if await store.is_fresh_waiting(conn):
            return False
        due = await lane_rows.next_due(conn, besides=())
        return (due is None or due > micros()) and not self.is_taking

    async def _take_always(self) -> None:
        with self._database.subscribe(DELIVERIES) as bell:
            self._bell = bell
            while not self._stopping:
                try:
                    seconds = await self._seconds_until_work()
                    if seconds > 0:
                        await bell.wait(timeout=min(seconds, self._poll))
                    elif not await self._take():
                        await asyncio.sleep(_OTHERS_WERE_FASTER_SECONDS)
                except (Exception, asyncio.CancelledError) as error:
                    if is_being_cancelled():
                        raise
                    tell(error)
                    await asyncio.sleep(_BACK_OFF_SECONDS)

    async def _seconds_until_work(self) -> float:
        """Look by reading only, so that an idle worker never holds up those who write."""
        if not self._has_room():
            return _FULL_SECONDS
        async with self._database.read() as conn:
            if await store.is_fresh_waiting(conn):
                return 0
            due = await lane_rows.next_due(conn, besides=self._lanes.full())
        return self._poll if due is None else (due - micros()) / 1e6

    def _has_room(self) -> bool:
        """Wait for much room, because large batches cost less, but not for long."""
        room = self._lanes.room
        if room >= min(BATCH, self._lanes.most) // 2:
            return True
        return room > 0 and monotonic() - self._took_at > _FULL_SECONDS

    async def _take(self) -> bool:
        self._took_at = monotonic()
        self.is_taking = True
        try:
            taken = Taken()
            async with self._database.transaction() as conn:
                await take_fresh(conn, self._lanes, taken, worker=self._worker)
                await take_due(conn, self._lanes, taken, worker=self._worker)
            self._receive(taken)
        finally:
            self.is_taking = False
        return taken.worked
