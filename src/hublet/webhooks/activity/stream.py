"""Stream of a webhook's deliveries: server-sent events as they come and change.

A listener looks when something was committed, a few times a second at most, and only at the
newest deliveries and at those that are still open.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import ExitStack

from hublet.core.clock import micros, monotonic
from hublet.core.database import Database, Reader, Subscription
from hublet.core.errors import HubError
from hublet.webhooks.activity import store
from hublet.webhooks.activity.records import DeliveryProgress
from hublet.webhooks.activity.schemas import StreamedDelivery
from hublet.webhooks.records import ATTEMPTS_CHANNEL, DELIVERIES_CHANNEL

KEEP_ALIVE_SECONDS = 15.0
# Under load commits come by the hundred each second; a listener takes them together.
_LEAST_PAUSE_SECONDS = 0.2

# An id is made before its row is committed: so far back something may still appear.
LOOK_BACK = 15_000_000
# So many are watched for a change however old they are, and so many that are to be tried next.
NEWEST = 200
_DUE = 100
_MOST_OPEN = 500
# Who was away for long is told of no more than this.
MOST_MISSED = 5000
_BATCH = 50


class DeliveryListener:
    """Remembers how far the deliveries of one webhook had come when they were last told of."""

    def __init__(self, database: Database, webhook_id: str) -> None:
        self._database = database
        self._webhook_id = webhook_id
        self._known: dict[str, DeliveryProgress] = {}

    async def begin(self, *, since: int | None) -> list[str]:
        """Take everything as told; return what happened since a moment all the same."""
        moment = (micros() if since is None else since) - LOOK_BACK
        async with self._database.read() as conn:
            self._known = await self._marks(conn, since=moment, due=_MOST_OPEN)
            if since is None:
                return []
            return sorted(await store.list_changed_since(conn, self._known, moment=moment))

    async def changes(self) -> list[str] | None:
        """Return the deliveries that are new or have changed; None when the webhook is gone."""
        async with self._database.read() as conn:
            if not await store.webhook_exists(conn, self._webhook_id):
                return None
            marks = await self._marks(conn, since=micros() - LOOK_BACK, due=_DUE)
        changed = [each for each, mark in marks.items() if self._known.get(each) != mark]
        self._known = marks
        return sorted(changed)

    async def tell(self, delivery_ids: Sequence[str]) -> AsyncGenerator[StreamedDelivery]:
        """Yield deliveries as they are now, oldest first."""
        for start in range(0, len(delivery_ids), _BATCH):
            async with self._database.read() as conn:
                batch = await store.list_updates(conn, delivery_ids[start : start + _BATCH])
            for told in batch:
                yield StreamedDelivery.told(told, webhook_id=self._webhook_id)

    async def _marks(self, conn: Reader, *, since: int, due: int) -> dict[str, DeliveryProgress]:
        newest = await self._newest(conn, since=since)
        next_due = await store.list_due_progress(conn, self._webhook_id, limit=due)
        marks = {mark.id: mark for mark in [*newest, *next_due]}
        still_open = sorted(
            each for each, mark in self._known.items() if mark.is_open and each not in marks
        )
        if still_open:
            for mark in await store.list_progress(conn, still_open[-_MOST_OPEN:]):
                marks[mark.id] = mark
        return marks

    async def _newest(self, conn: Reader, *, since: int) -> list[DeliveryProgress]:
        floor, found = store.id_at(since), list[DeliveryProgress]()
        while len(found) < MOST_MISSED:
            before = found[-1].id if found else ""
            page = await store.list_newest_progress(
                conn, self._webhook_id, before=before, limit=NEWEST
            )
            found += page
            if len(page) < NEWEST or page[-1].id < floor:
                break
        return found


async def listen(
    database: Database,
    webhook_id: str,
    *,
    since: int | None,
    check_access: Callable[[], Awaitable[None]],
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    """Yield server-sent events until the webhook is gone, the access is, or the hub stops.

    The id of an event is the moment of the look that found it: who comes back with it is told of
    everything since, and of the last seconds before that once more.
    """
    try:
        async for piece in _listen(database, webhook_id, since, check_access, stopping):
            yield piece
    except HubError:
        # The access is gone, or the database is away. It is too late for an answer that says
        # so; the listener comes back and then hears why.
        return


async def _listen(
    database: Database,
    webhook_id: str,
    since: int | None,
    check_access: Callable[[], Awaitable[None]],
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    listener = DeliveryListener(database, webhook_id)
    with ExitStack() as opened:
        bells = [
            opened.enter_context(database.subscribe(each))
            for each in (DELIVERIES_CHANNEL, ATTEMPTS_CHANNEL)
        ]
        moment, looked_at = micros(), monotonic()
        changed: list[str] | None = await listener.begin(since=since)
        yield f": listening\nretry: 1000\nid: {moment}\n\n"
        spoke_at = monotonic()
        while changed is not None and not stopping.is_set():
            async for delivery in listener.tell(changed):
                yield f"event: delivery\nid: {moment}\ndata: {delivery.model_dump_json()}\n\n"
            if monotonic() >= spoke_at + KEEP_ALIVE_SECONDS:
                await check_access()
                yield f": still listening\nid: {moment}\n\n"
                spoke_at = monotonic()
            await _wait_for_change(bells, stopping, until=spoke_at + KEEP_ALIVE_SECONDS)
            await asyncio.sleep(looked_at + _LEAST_PAUSE_SECONDS - monotonic())
            moment, looked_at = micros(), monotonic()
            changed = await listener.changes()


async def _wait_for_change(
    bells: Sequence[Subscription], stopping: asyncio.Event, *, until: float
) -> None:
    """Wait for something to happen, until a moment at the latest."""
    seconds = max(0.0, until - monotonic())
    waits = [
        *(asyncio.ensure_future(bell.wait(timeout=seconds)) for bell in bells),
        asyncio.ensure_future(stopping.wait()),
    ]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
