"""Claims of one worker: leases deliveries that are fresh or due again, while it has room, extends what it has,
and releases what a dead worker had.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from hublet.core.clock import micros, monotonic
from hublet.core.database import Connection, Database, Reader, Row, Subscription
from hublet.core.outbox import publish
from hublet.core.retries import retry
from hublet.events import WebhookThrottled
from hublet.webhooks.delivery import lanes_store, store
from hublet.webhooks.delivery.backoff import WHOLE_SCHEDULE
from hublet.webhooks.delivery.failure_messages import log_failure
from hublet.webhooks.delivery.health import Judgement, after_waiting, probe_delay
from hublet.webhooks.delivery.lanes import LANE_ROOM, Lanes
from hublet.webhooks.delivery.lanes_store import make_due
from hublet.webhooks.delivery.outcomes import apply_judgement
from hublet.webhooks.delivery.records import StoredLane
from hublet.webhooks.records import DELIVERIES_CHANNEL, ClaimedDelivery, UnsentReason

BATCH = 256
# Few: others who count triggers of these webhooks wait until the commit.
_LANES_AT_ONCE = 8
_GIVEN_UP_AT_ONCE = 1000
# What is due and yet cannot be claimed is just being claimed by another worker.
_CONTENTION_SECONDS = 0.02
_FULL_SECONDS = 0.02


@dataclass(slots=True)
class ClaimedBatch:
    """Deliveries that are claimed once this is committed, and their lanes as they were then."""

    deliveries: list[ClaimedDelivery] = field(default_factory=list)
    lanes: dict[str, StoredLane] = field(default_factory=dict)
    # Whether there was anything to do.
    worked: bool = False


async def claim_fresh(conn: Connection, lanes: Lanes, batch: ClaimedBatch, *, worker: str) -> None:
    """Count new deliveries for their webhooks' daily limits, and claim as many as there is room for.

    Those over the daily limit end as unsent. Those of a busy or degraded lane are released for
    later, so that they never delay the deliveries of others.
    """
    rows = await store.claim_fresh(conn, worker=worker, limit=min(BATCH, lanes.room))
    if not rows:
        return
    # Read before the lanes are locked: other workers wait for those until the commit.
    events = await store.list_events(conn, {row["event_id"] for row in rows})
    triggers = [row["webhook_id"] for row in rows if not row["ping"]]
    pings = [row["webhook_id"] for row in rows if row["ping"]]
    known = await lanes_store.count_triggers(conn, triggers, pings)
    sent, throttled = await _throttle(conn, rows, Counter(triggers), known)
    sent, left = _split_at_room(sent, known, lanes)
    if throttled:
        await store.mark_unsent(conn, throttled, UnsentReason.throttled)
    if left:
        await store.release(conn, left)
        await lanes_store.set_next_due(
            conn, {row["webhook_id"]: _next_check(known[row["webhook_id"]]) for row in left}
        )
    batch.deliveries += [store.delivery_record(row, events[row["event_id"]]) for row in sent]
    batch.lanes |= known
    batch.worked = True


async def _throttle(
    conn: Connection, rows: Sequence[Row], counts: dict[str, int], known: dict[str, StoredLane]
) -> tuple[list[Row], list[Row]]:
    """Split off the deliveries over the daily limit, and publish which webhooks reach it now."""
    limit = conn.hub.settings.webhooks.daily_triggers
    if limit is None:
        return list(rows), []
    # The lanes are locked, so only one batch of a day finds the limit between these two counts.
    for webhook_id, count in counts.items():
        if known[webhook_id].day_count - count <= limit < known[webhook_id].day_count:
            await _publish_throttled(conn, webhook_id, limit)
    over = {each: max(0, min(counts[each], known[each].day_count - limit)) for each in counts}
    return _split_at_limit(rows, over)


async def _publish_throttled(conn: Connection, webhook_id: str, limit: int) -> None:
    for row in await lanes_store.list_webhooks(conn, [webhook_id]):
        await publish(
            conn,
            WebhookThrottled(
                webhook_id=webhook_id,
                owner_id=row["owner_id"],
                creator_id=row["creator_id"],
                limit=limit,
            ),
        )


def _split_at_limit(rows: Sequence[Row], over: dict[str, int]) -> tuple[list[Row], list[Row]]:
    """Split off, for each webhook, as many of the last ones as are over its limit."""
    within: list[Row] = []
    beyond: list[Row] = []
    left = dict(over)
    for row in reversed(rows):
        if not row["ping"] and left[row["webhook_id"]] > 0:
            left[row["webhook_id"]] -= 1
            beyond.append(row)
        else:
            within.append(row)
    return within[::-1], beyond


def _split_at_room(
    rows: Sequence[Row], known: dict[str, StoredLane], lanes: Lanes
) -> tuple[list[Row], list[Row]]:
    fits: list[Row] = []
    left: list[Row] = []
    used: Counter[str] = Counter()
    for row in rows:
        webhook_id = row["webhook_id"]
        room = 0 if known[webhook_id].is_degraded else lanes.room_for(webhook_id)
        if row["ping"] or used[webhook_id] < room:
            used[webhook_id] += 1
            fits.append(row)
        else:
            left.append(row)
    return fits, left


def _next_check(lane: StoredLane) -> int:
    """Return when a lane is due in which deliveries were left."""
    now = micros()
    if not lane.is_degraded or lane.next_due_at is None:
        return now
    # It may have waited for a retry that lies hours ahead.
    return min(lane.next_due_at, now + probe_delay(lane.health.probes))


async def claim_due(conn: Connection, lanes: Lanes, batch: ClaimedBatch, *, worker: str) -> None:
    """Claim what is due in the lanes that have waited longest; of a degraded one a single probe."""
    room = lanes.room
    if room <= 0:
        return
    due = await lanes_store.lock_due_lanes(conn, except_for=lanes.full(), limit=_LANES_AT_ONCE)
    times: dict[str, int | None] = {}
    claimed: list[Row] = []
    for webhook_id, lane in due.items():
        if len(claimed) >= room:
            break
        batch.worked = True
        batch.lanes[webhook_id] = lane
        if lane.is_degraded and (given_up := await _give_up_waiting(conn, lane)):
            times[webhook_id] = None if given_up.suspends else micros()
            continue
        limit = min(room - len(claimed), _room_of(lane, lanes))
        rows = await store.claim_due(conn, webhook_id, worker=worker, limit=limit)
        claimed += rows
        times[webhook_id] = (
            micros() + probe_delay(lane.health.probes)
            if rows and lane.is_degraded
            else await store.earliest_due(conn, webhook_id)
        )
    await lanes_store.set_next_due(conn, times)
    if claimed:
        events = await store.list_events(conn, {row["event_id"] for row in claimed})
        batch.deliveries += [store.delivery_record(row, events[row["event_id"]]) for row in claimed]


def _room_of(lane: StoredLane, lanes: Lanes) -> int:
    return 1 if lane.is_degraded else lanes.room_for(lane.webhook_id) or LANE_ROOM


async def _give_up_waiting(conn: Connection, lane: StoredLane) -> Judgement | None:
    """Give up deliveries that waited longer than any schedule; return the judgement of the target."""
    now = micros()
    count = await store.give_up_waiting(
        conn, lane.webhook_id, since=now - WHOLE_SCHEDULE, limit=_GIVEN_UP_AT_ONCE
    )
    if not count:
        return None
    judgement = after_waiting(lane.health, given_up=count, now=now)
    await lanes_store.set_health(conn, {lane.webhook_id: judgement.health})
    await apply_judgement(conn, lane.webhook_id, judgement)
    return judgement


class ClaimLoop:
    """Claims deliveries for one worker; calls `receive` with each batch once it is committed."""

    def __init__(
        self,
        database: Database,
        lanes: Lanes,
        *,
        worker: str,
        receive: Callable[[ClaimedBatch], None],
    ) -> None:
        self._database = database
        self._lanes = lanes
        self._worker = worker
        self._receive = receive
        self._poll = database.hub.settings.worker.poll_seconds
        self._subscription: Subscription | None = None
        self._loop: asyncio.Task[None] | None = None
        self._stopping = False
        self._claimed_at = 0.0
        self.is_claiming = False

    @property
    def changes(self) -> int:
        """A number that differs after every commit of this process that may concern webhooks."""
        return 0 if self._subscription is None else self._subscription.wakes

    def start(self) -> None:
        self._loop = asyncio.create_task(self._run(), name="webhook-taking")

    def wake(self) -> None:
        """Try again: there may be something to claim, or room for it."""
        if self._subscription is not None:
            self._subscription.wake()

    async def finish(self) -> None:
        """Claim nothing more."""
        self._stopping = True
        self.wake()
        if self._loop is not None:
            await asyncio.wait([self._loop])

    async def abandon(self) -> None:
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)

    async def is_empty(self, conn: Reader) -> bool:
        """Tell whether nothing could be claimed now."""
        if await store.has_fresh(conn):
            return False
        due = await lanes_store.next_due(conn, except_for=())
        return (due is None or due > micros()) and not self.is_claiming

    async def _run(self) -> None:
        with self._database.subscribe(DELIVERIES_CHANNEL) as changes:
            self._subscription = changes
            await retry(lambda: self._claim_until_stopped(changes), log_failure=log_failure)

    async def _claim_until_stopped(self, changes: Subscription) -> None:
        while not self._stopping:
            seconds = await self._seconds_until_work()
            if seconds > 0:
                await changes.wait(timeout=min(seconds, self._poll))
            elif not await self._claim():
                await asyncio.sleep(_CONTENTION_SECONDS)

    async def _seconds_until_work(self) -> float:
        """Only read here, so that an idle worker never delays those who write."""
        if not self._has_room():
            return _FULL_SECONDS
        async with self._database.read() as conn:
            if await store.has_fresh(conn):
                return 0
            due = await lanes_store.next_due(conn, except_for=self._lanes.full())
        return self._poll if due is None else (due - micros()) / 1e6

    def _has_room(self) -> bool:
        """Tell whether to claim now: large batches cost less, so wait a moment for much room."""
        room = self._lanes.room
        if room >= min(BATCH, self._lanes.most) // 2:
            return True
        return room > 0 and monotonic() - self._claimed_at > _FULL_SECONDS

    async def _claim(self) -> bool:
        self._claimed_at = monotonic()
        self.is_claiming = True
        worked = False
        try:
            # In transactions of their own: lanes that one has locked must not wait for the other.
            for claim in (claim_fresh, claim_due):
                batch = ClaimedBatch()
                async with self._database.transaction() as conn:
                    await claim(conn, self._lanes, batch, worker=self._worker)
                self._receive(batch)
                worked = worked or batch.worked
        finally:
            self.is_claiming = False
        return worked


# A quarter of a lease, so that a few failures in a row lose nothing.
LEASE_INTERVAL_SECONDS = 15.0


class DeliveryLeaseStore:
    """Leases of one worker on deliveries, as `LeaseKeeper` wants them."""

    def __init__(self, *, worker: str) -> None:
        self._worker = worker

    async def extend(self, conn: Connection, held: Collection[str]) -> list[str]:
        await store.extend(conn, held, worker=self._worker)
        return []

    async def has_expired(self, conn: Reader, _held: Collection[str]) -> bool:
        return await store.has_expired(conn)

    async def release_expired(self, conn: Connection, held: Collection[str]) -> None:
        await _make_due(conn, await store.release_expired(conn, except_for=held))

    async def release_all(self, conn: Connection) -> int:
        return await release(conn, worker=self._worker)


async def release(conn: Connection, *, worker: str) -> int:
    """Make everything that a stopping or dead worker held due at once; return how many."""
    return await _make_due(conn, await store.release_all(conn, worker=worker))


async def _make_due(conn: Connection, webhook_ids: Sequence[str]) -> int:
    if webhook_ids:
        await make_due(conn, set(webhook_ids))
        conn.wake(DELIVERIES_CHANNEL)
    return len(webhook_ids)
