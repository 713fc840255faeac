"""Stream of a webhook's deliveries: server-sent events as they come and change.

A listener reads after commits, a few times a second at most, and only the newest deliveries and
those that are still open.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import ExitStack

from hublet.core.clock import micros, monotonic
from hublet.core.database import Database, Reader, Subscription
from hublet.core.errors import HubError
from hublet.core.ids import id_at
from hublet.webhooks.activity import store
from hublet.webhooks.activity.records import DeliveryProgress
from hublet.webhooks.activity.schemas import StreamedDelivery
from hublet.webhooks.records import ATTEMPTS_CHANNEL, DELIVERIES_CHANNEL

KEEP_ALIVE_SECONDS = 15.0
# Under load there are hundreds of commits each second; a listener reads them together.
_LEAST_PAUSE_SECONDS = 0.2

# An id is made before its row is committed: so far back something may still appear.
LOOK_BACK = 15_000_000
# So many of the newest are compared however old they are, and so many of those that are due next.
NEWEST = 200
_DUE = 100
_MOST_OPEN = 500
# A client that was away for long gets no more than this.
MOST_MISSED = 5000
_BATCH = 50


class DeliveryListener:
    """Remembers the progress of one webhook's deliveries when they were last sent to the client."""

    def __init__(self, database: Database, webhook_id: str) -> None:
        self._database = database
        self._webhook_id = webhook_id
        self._progress: dict[str, DeliveryProgress] = {}

    async def begin(self, *, since: int | None) -> list[str]:
        """Take everything as sent; return only what has changed since a moment, if one is given."""
        moment = (micros() if since is None else since) - LOOK_BACK
        async with self._database.read() as conn:
            self._progress = await self._read_progress(conn, since=moment, due=_MOST_OPEN)
            if since is None:
                return []
            return sorted(await store.list_changed_since(conn, self._progress, moment=moment))

    async def changes(self) -> list[str] | None:
        """Return the deliveries that are new or have changed; None when the webhook was deleted."""
        async with self._database.read() as conn:
            if not await store.webhook_exists(conn, self._webhook_id):
                return None
            progress = await self._read_progress(conn, since=micros() - LOOK_BACK, due=_DUE)
        changed = [each for each, now in progress.items() if self._progress.get(each) != now]
        self._progress = progress
        return sorted(changed)

    async def read_updates(self, delivery_ids: Sequence[str]) -> AsyncGenerator[StreamedDelivery]:
        """Yield deliveries as they are now, oldest first."""
        for start in range(0, len(delivery_ids), _BATCH):
            async with self._database.read() as conn:
                batch = await store.list_updates(conn, delivery_ids[start : start + _BATCH])
            for update in batch:
                yield StreamedDelivery.of_update(update, webhook_id=self._webhook_id)

    async def _read_progress(
        self, conn: Reader, *, since: int, due: int
    ) -> dict[str, DeliveryProgress]:
        newest = await self._newest(conn, since=since)
        next_due = await store.list_due_progress(conn, self._webhook_id, limit=due)
        progress = {each.id: each for each in [*newest, *next_due]}
        still_open = sorted(
            each.id for each in self._progress.values() if each.is_open and each.id not in progress
        )
        if still_open:
            for each in await store.list_progress(conn, still_open[-_MOST_OPEN:]):
                progress[each.id] = each
        return progress

    async def _newest(self, conn: Reader, *, since: int) -> list[DeliveryProgress]:
        floor, found = id_at(since), list[DeliveryProgress]()
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
    """Yield server-sent events until the webhook is deleted, the access is lost, or the hub stops.

    The id of an event is the time of the read that found it: a client that reconnects with it gets
    everything since, and the last seconds before that once more.
    """
    try:
        async for piece in _listen(database, webhook_id, since, check_access, stopping):
            yield piece
    except HubError:
        # The access is lost, or the database is unavailable. It is too late for an error response;
        # the client reconnects and gets it then.
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
        subscriptions = [
            opened.enter_context(database.subscribe(each))
            for each in (DELIVERIES_CHANNEL, ATTEMPTS_CHANNEL)
        ]
        moment, read_at = micros(), monotonic()
        changed: list[str] | None = await listener.begin(since=since)
        yield f": listening\nretry: 1000\nid: {moment}\n\n"
        sent_at = monotonic()
        while changed is not None and not stopping.is_set():
            async for delivery in listener.read_updates(changed):
                yield f"event: delivery\nid: {moment}\ndata: {delivery.model_dump_json()}\n\n"
            if monotonic() >= sent_at + KEEP_ALIVE_SECONDS:
                await check_access()
                yield f": still listening\nid: {moment}\n\n"
                sent_at = monotonic()
            await _wait_for_change(subscriptions, stopping, until=sent_at + KEEP_ALIVE_SECONDS)
            await asyncio.sleep(read_at + _LEAST_PAUSE_SECONDS - monotonic())
            moment, read_at = micros(), monotonic()
            changed = await listener.changes()


async def _wait_for_change(
    subscriptions: Sequence[Subscription], stopping: asyncio.Event, *, until: float
) -> None:
    """Wait for a commit or the stop of the hub, until a moment at the latest."""
    seconds = max(0.0, until - monotonic())
    waits = [
        *(asyncio.ensure_future(each.wait(timeout=seconds)) for each in subscriptions),
        asyncio.ensure_future(stopping.wait()),
    ]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
