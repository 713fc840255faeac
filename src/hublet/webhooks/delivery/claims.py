"""Claims on deliveries for one worker: what is fresh or due again, while there is room."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hublet.core.cancellation import is_being_cancelled
from hublet.core.clock import micros, monotonic
from hublet.core.database import Connection, Database, Reader, Row, Subscription
from hublet.webhooks.delivery import lanes_store as targets
from hublet.webhooks.delivery import store
from hublet.webhooks.delivery.backoff import WHOLE_SCHEDULE
from hublet.webhooks.delivery.failure_messages import log_failure
from hublet.webhooks.delivery.health import Judgement, after_waiting, probe_delay
from hublet.webhooks.delivery.lanes import LANE_ROOM, Lanes
from hublet.webhooks.delivery.outcomes import apply_judgement
from hublet.webhooks.delivery.records import StoredLane
from hublet.webhooks.records import DELIVERIES_CHANNEL, ClaimedDelivery, UnsentReason


@dataclass(slots=True)
class ClaimedBatch:
    """Deliveries that are held once this is committed, and the lanes as they were then."""

    deliveries: list[ClaimedDelivery] = field(default_factory=list)
    lanes: dict[str, StoredLane] = field(default_factory=dict)
    # Whether anything was done at all.
    worked: bool = False


BATCH = 256
_LANES_AT_ONCE = 32
_GIVEN_UP_AT_ONCE = 1000


async def claim_fresh(conn: Connection, lanes: Lanes, taken: ClaimedBatch, *, worker: str) -> None:
    """Look at what was just caused: count it, and hold what there is room for.

    What is over the daily limit is left unsent. The rest of a busy or degraded lane is left
    for later, so that it never stands before the deliveries of others.
    """
    rows = await store.claim_fresh(conn, worker=worker, limit=min(BATCH, lanes.room))
    if not rows:
        return
    counts = {row["webhook_id"]: 0 for row in rows}
    for row in rows:
        counts[row["webhook_id"]] += not row["ping"]
    await targets.count_triggers(conn, counts)
    known = await targets.list_lanes(conn, counts)
    limit = conn.hub.settings.webhooks.daily_triggers
    over = {each: max(0, min(counts[each], known[each].day_count - limit)) for each in counts}
    sent, throttled = _split_at_limit(rows, over)
    sent, left = _split_at_room(sent, known, lanes)
    if throttled:
        await store.mark_unsent(conn, [row["id"] for row in throttled], UnsentReason.throttled)
    if left:
        await store.release(conn, [row["id"] for row in left])
        await targets.set_next_due(
            conn, {row["webhook_id"]: _next_check(known[row["webhook_id"]]) for row in left}
        )
    await _add_to_batch(conn, taken, sent)
    taken.lanes |= known
    taken.worked = True


def _split_at_limit(rows: Sequence[Row], over: dict[str, int]) -> tuple[list[Row], list[Row]]:
    """Take from the end, for each webhook, as many as are over its limit."""
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
    """Return when to look at a lane in which something was left."""
    now = micros()
    if not lane.is_degraded or lane.next_due_at is None:
        return now
    # It may have waited for a retry that lies hours ahead.
    return min(lane.next_due_at, now + probe_delay(lane.health.probes))


async def claim_due(conn: Connection, lanes: Lanes, taken: ClaimedBatch, *, worker: str) -> None:
    """Hold what is due in lanes that have waited longest; of a degraded one a single probe."""
    room = lanes.room - len(taken.deliveries)
    due = await targets.lock_due_lanes(conn, besides=lanes.full(), limit=_LANES_AT_ONCE)
    times: dict[str, int | None] = {}
    for webhook_id, lane in due.items():
        if room <= 0:
            break
        taken.worked = True
        taken.lanes[webhook_id] = lane
        if lane.is_degraded and (given_up := await _give_up_waiting(conn, lane)):
            times[webhook_id] = None if given_up.suspends else micros()
            continue
        limit = min(room, _room_of(lane, lanes, taken))
        rows = await store.claim_due(conn, webhook_id, worker=worker, limit=limit)
        await _add_to_batch(conn, taken, rows)
        room -= len(rows)
        times[webhook_id] = (
            micros() + probe_delay(lane.health.probes)
            if rows and lane.is_degraded
            else await store.earliest_due(conn, webhook_id)
        )
    await targets.set_next_due(conn, times)


def _room_of(lane: StoredLane, lanes: Lanes, taken: ClaimedBatch) -> int:
    if lane.is_degraded:
        return 1
    held = sum(each.webhook_id == lane.webhook_id for each in taken.deliveries)
    return max(1, (lanes.room_for(lane.webhook_id) or LANE_ROOM) - held)


async def _give_up_waiting(conn: Connection, lane: StoredLane) -> Judgement | None:
    """Give up what waited longer than any schedule; return what that means for the target."""
    now = micros()
    count = await store.give_up_waiting(
        conn, lane.webhook_id, since=now - WHOLE_SCHEDULE, limit=_GIVEN_UP_AT_ONCE
    )
    if not count:
        return None
    judgement = after_waiting(lane.health, given_up=count, now=now)
    await targets.set_health(conn, {lane.webhook_id: judgement.health})
    await apply_judgement(conn, lane.webhook_id, judgement)
    return judgement


async def _add_to_batch(conn: Connection, taken: ClaimedBatch, rows: Sequence[Row]) -> None:
    if rows:
        told = await store.list_events(conn, {row["event_id"] for row in rows})
        taken.deliveries += [store.delivery_record(row, told[row["event_id"]]) for row in rows]


_BACK_OFF_SECONDS = 0.5
# What is due and yet cannot be taken is just being taken by another worker.
_CONTENTION_SECONDS = 0.02
_FULL_SECONDS = 0.02


class ClaimLoop:
    """Takes for one worker; `receive` hears of what was taken, once that is committed."""

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
        if await store.has_fresh(conn):
            return False
        due = await targets.next_due(conn, besides=())
        return (due is None or due > micros()) and not self.is_taking

    async def _take_always(self) -> None:
        with self._database.subscribe(DELIVERIES_CHANNEL) as bell:
            self._bell = bell
            while not self._stopping:
                try:
                    seconds = await self._seconds_until_work()
                    if seconds > 0:
                        await bell.wait(timeout=min(seconds, self._poll))
                    elif not await self._take():
                        await asyncio.sleep(_CONTENTION_SECONDS)
                except (Exception, asyncio.CancelledError) as error:
                    if is_being_cancelled():
                        raise
                    log_failure(error)
                    await asyncio.sleep(_BACK_OFF_SECONDS)

    async def _seconds_until_work(self) -> float:
        """Look by reading only, so that an idle worker never holds up those who write."""
        if not self._has_room():
            return _FULL_SECONDS
        async with self._database.read() as conn:
            if await store.has_fresh(conn):
                return 0
            due = await targets.next_due(conn, besides=self._lanes.full())
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
            taken = ClaimedBatch()
            async with self._database.transaction() as conn:
                await claim_fresh(conn, self._lanes, taken, worker=self._worker)
                await claim_due(conn, self._lanes, taken, worker=self._worker)
            self._receive(taken)
        finally:
            self.is_taking = False
        return taken.worked
