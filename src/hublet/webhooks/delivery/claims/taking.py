"""Takes deliveries for this worker: what is fresh, and what is due again."""

from collections import Counter
from collections.abc import Sequence

from hublet.core.clock import micros
from hublet.core.database import Connection, Row
from hublet.webhooks.delivery.backoff import WHOLE_SCHEDULE
from hublet.webhooks.delivery.claims import store
from hublet.webhooks.delivery.claims.records import Taken
from hublet.webhooks.delivery.health import Judgement, after_waiting, probe_delay
from hublet.webhooks.delivery.lanes import LANE_ROOM, Lanes
from hublet.webhooks.delivery.records import Unsent
from hublet.webhooks.delivery.targets import store as targets
from hublet.webhooks.delivery.targets.consequences import follow
from hublet.webhooks.delivery.targets.records import Lane

BATCH = 256
_LANES_AT_ONCE = 32
_GIVEN_UP_AT_ONCE = 1000


async def take_fresh(conn: Connection, lanes: Lanes, taken: Taken, *, worker: str) -> None:
    """Look at what was just caused: count it, and hold what there is room for.

    What is over the daily limit is left unsent. The rest of a busy or degraded lane is left
    for later, so that it never stands before the deliveries of others.
    """
    rows = await store.take_fresh(conn, worker=worker, limit=min(BATCH, lanes.room))
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
        await store.leave_unsent(conn, [row["id"] for row in throttled], Unsent.throttled)
    if left:
        await store.set_aside(conn, [row["id"] for row in left])
        await targets.set_next_due(
            conn, {row["webhook_id"]: _look_at(known[row["webhook_id"]]) for row in left}
        )
    await _add(conn, taken, sent)
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
    rows: Sequence[Row], known: dict[str, Lane], lanes: Lanes
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


def _look_at(lane: Lane) -> int:
    """Return when to look at a lane in which something was left."""
    now = micros()
    if not lane.is_degraded or lane.next_due_at is None:
        return now
    # It may have waited for a retry that lies hours ahead.
    return min(lane.next_due_at, now + probe_delay(lane.health.probes))


async def take_due(conn: Connection, lanes: Lanes, taken: Taken, *, worker: str) -> None:
    """Hold what is due in lanes that have waited longest; of a degraded one a single probe."""
    room = lanes.room - len(taken.deliveries)
    due = await targets.hold_due_lanes(conn, besides=lanes.full(), limit=_LANES_AT_ONCE)
    times: dict[str, int | None] = {}
    for webhook_id, lane in due.items():
        if room <= 0:
            break
        taken.worked = True
        taken.lanes[webhook_id] = lane
        if lane.is_degraded and (given_up := await _give_up(conn, lane)):
            times[webhook_id] = None if given_up.suspends else micros()
            continue
        limit = min(room, _room_of(lane, lanes, taken))
        rows = await store.take_due(conn, webhook_id, worker=worker, limit=limit)
        await _add(conn, taken, rows)
        room -= len(rows)
        times[webhook_id] = (
            micros() + probe_delay(lane.health.probes)
            if rows and lane.is_degraded
            else await store.earliest_due(conn, webhook_id)
        )
    await targets.set_next_due(conn, times)


def _room_of(lane: Lane, lanes: Lanes, taken: Taken) -> int:
    if lane.is_degraded:
        return 1
    held = sum(each.webhook_id == lane.webhook_id for each in taken.deliveries)
    return max(1, (lanes.room_for(lane.webhook_id) or LANE_ROOM) - held)


async def _give_up(conn: Connection, lane: Lane) -> Judgement | None:
    """Give up what waited longer than any schedule; return what that means for the target."""
    now = micros()
    count = await store.give_up_waiting(
        conn, lane.webhook_id, since=now - WHOLE_SCHEDULE, limit=_GIVEN_UP_AT_ONCE
    )
    if not count:
        return None
    judgement = after_waiting(lane.health, given_up=count, now=now)
    await targets.set_health(conn, {lane.webhook_id: judgement.health})
    await follow(conn, lane.webhook_id, judgement)
    return judgement


async def _add(conn: Connection, taken: Taken, rows: Sequence[Row]) -> None:
    if rows:
        told = await store.list_happenings(conn, {row["event_id"] for row in rows})
        taken.deliveries += [store.delivery(row, told[row["event_id"]]) for row in rows]
