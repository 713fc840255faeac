"""Outcomes of attempts: what each one leaves of its delivery and of its target's health.

A group of outcomes is written in one transaction: the deliveries end or become due again, their
attempts are stored, the health of their targets is judged, and a target that fails for too long is
suspended.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from hublet.core.clock import micros
from hublet.core.database import Connection
from hublet.core.ids import random_bytes
from hublet.core.outbox import Event, publish
from hublet.events import WebhookFailing, WebhookRecovered, WebhookSuspended
from hublet.webhooks.delivery import lanes_store, store
from hublet.webhooks.delivery.backoff import next_delay
from hublet.webhooks.delivery.health import (
    Health,
    Judgement,
    after_failure,
    after_success,
    probe_delay,
)
from hublet.webhooks.delivery.records import Ending, StoredLane
from hublet.webhooks.records import (
    ATTEMPTS_CHANNEL,
    ClaimedDelivery,
    DeliveryState,
    GivenUpReason,
    Outcome,
    UnsentReason,
)

# The last success of a healthy target is only written when it is older than this.
_STALE = 10_000_000

# By the id of the delivery: how it ends, and when it is due again.
Endings = dict[str, tuple[Ending, int | None]]


async def write_outcomes(
    conn: Connection, outcomes: Sequence[Outcome], known: Mapping[str, Health], *, worker: str
) -> dict[str, Health]:
    """Write all outcomes in this transaction; return the health of the lanes that were judged.

    Deliveries that another worker has claimed by now are left to it. `known` is the health that
    this worker last saw: lanes that are healthy and stay healthy are not even read.
    """
    now = micros()
    endings: Endings = {
        each.delivery.id: ending_of(each, now=now, chance=_chance(each)) for each in outcomes
    }
    ended = await _end_deliveries(conn, outcomes, endings, worker=worker)
    written = [each for each in outcomes if each.delivery.id in ended]
    attempts = [(each.delivery.id, each.attempt) for each in written if each.attempt is not None]
    if attempts:
        await store.add_attempts(conn, attempts)
        conn.wake(ATTEMPTS_CHANNEL)
    if due := [
        (each.delivery, at) for each in written if (at := endings[each.delivery.id][1]) is not None
    ]:
        await store.set_due(conn, due)
    healths = await _judge_lanes(conn, written, endings, known, now=now)
    if released := {e.delivery.webhook_id for e in written if not (e.attempt or e.unsent)}:
        await lanes_store.make_due(conn, released)
    return healths


def ending_of(outcome: Outcome, *, now: int, chance: float) -> tuple[Ending, int | None]:
    """Return how a delivery ends, and when it is due again if it is not over."""
    attempt = outcome.attempt
    if attempt is None:
        if outcome.unsent is not None:
            return Ending(state=DeliveryState.unsent, reason=outcome.unsent), None
        return Ending(state=DeliveryState.pending), None
    status = attempt.status
    if outcome.succeeded:
        return Ending(state=DeliveryState.delivered, status=status, tried=1), None
    if outcome.delivery.ping:
        failed = DeliveryState.failed
        return Ending(state=failed, reason=attempt.reason, status=status, tried=1), None
    tries = outcome.delivery.tries + 1
    delay = next_delay(tries, chance=chance, retry_after=outcome.retry_after)
    if outcome.gone or delay is None:
        reason = GivenUpReason.gone if outcome.gone else GivenUpReason.exhausted
        return Ending(state=DeliveryState.failed, reason=reason, status=status, tried=1), None
    pending = DeliveryState.pending
    return Ending(state=pending, reason=attempt.reason, status=status, tried=1), now + delay


def _chance(outcome: Outcome) -> float:
    return 0.5 if outcome.succeeded else int.from_bytes(random_bytes(2)) / 0xFFFF


async def _end_deliveries(
    conn: Connection, outcomes: Sequence[Outcome], endings: Endings, *, worker: str
) -> set[str]:
    """Write the endings, equal ones together; return the deliveries that were still claimed."""
    equal: dict[Ending, list[ClaimedDelivery]] = defaultdict(list)
    for each in outcomes:
        equal[endings[each.delivery.id][0]].append(each.delivery)
    ended: set[str] = set()
    for ending, deliveries in equal.items():
        ended |= await store.end_deliveries(conn, deliveries, ending, worker=worker)
    return ended


async def _judge_lanes(
    conn: Connection,
    outcomes: Sequence[Outcome],
    endings: Endings,
    known: Mapping[str, Health],
    *,
    now: int,
) -> dict[str, Health]:
    by_webhook: dict[str, list[Outcome]] = defaultdict(list)
    for each in outcomes:
        # A ping says nothing about the deliveries that wait.
        if each.attempt is not None and not each.delivery.ping:
            by_webhook[each.delivery.webhook_id].append(each)
    changed = [
        webhook_id
        for webhook_id, group in by_webhook.items()
        if _changes_health(known.get(webhook_id), group, now)
    ]
    if not changed:
        return {}
    healths: dict[str, Health] = {}
    times: dict[str, int | None] = {}
    for webhook_id, lane in (await lanes_store.lock_lanes(conn, changed)).items():
        health, suspended = await _judge_lane(conn, lane, by_webhook[webhook_id], endings, now=now)
        healths[webhook_id] = health
        times[webhook_id] = (
            None
            if suspended
            else await _next_due(conn, lane, health, by_webhook[webhook_id], endings, now=now)
        )
    await lanes_store.set_health(conn, healths)
    await lanes_store.set_next_due(conn, times)
    return healths


def _changes_health(health: Health | None, group: Sequence[Outcome], now: int) -> bool:
    if health is None or not health.is_clean or not all(each.succeeded for each in group):
        return True
    return health.last_success_at is None or now - health.last_success_at > _STALE


async def _judge_lane(
    conn: Connection, lane: StoredLane, group: Sequence[Outcome], endings: Endings, *, now: int
) -> tuple[Health, bool]:
    """Judge the outcomes in their order; return the health, and whether the target is suspended."""
    health, suspended = lane.health, False
    for each in group:
        judgement = _judge_outcome(health, each, endings, now)
        health = judgement.health
        suspended = suspended or judgement.suspends
        attempt = each.attempt
        if attempt is not None:
            await apply_judgement(
                conn, lane.webhook_id, judgement, status=attempt.status, reason=attempt.reason
            )
    return health, suspended


def _judge_outcome(health: Health, outcome: Outcome, endings: Endings, now: int) -> Judgement:
    if outcome.succeeded or outcome.attempt is None:
        return after_success(health, now=now)
    return after_failure(
        health,
        started_at=outcome.attempt.started_at,
        now=now,
        exhausted=endings[outcome.delivery.id][0].reason == GivenUpReason.exhausted,
        gone=outcome.gone,
    )


async def apply_judgement(
    conn: Connection,
    webhook_id: str,
    judgement: Judgement,
    *,
    status: int | None = None,
    reason: str | None = None,
) -> None:
    """Suspend the webhook or publish an event about it, as judged.

    Status and reason are those of the last attempt.
    """
    if judgement.notify is None and not judgement.suspends and not judgement.recovers:
        return
    found = await lanes_store.list_webhooks(conn, [webhook_id])
    if not found:
        return
    whose = {
        "webhook_id": webhook_id,
        "owner_id": found[0]["owner_id"],
        "creator_id": found[0]["creator_id"],
    }
    event: Event
    if judgement.suspends:
        if not await lanes_store.suspend(conn, webhook_id):
            return
        await store.mark_waiting_unsent(conn, webhook_id, UnsentReason.suspended)
        event = WebhookSuspended(**whose, status=status, reason=reason)
    elif judgement.notify is not None:
        percent = judgement.notify
        event = WebhookFailing(**whose, percent=percent, status=status, reason=reason)
    else:
        event = WebhookRecovered(**whose)
    await publish(conn, event)


async def _next_due(
    conn: Connection,
    lane: StoredLane,
    health: Health,
    group: Sequence[Outcome],
    endings: Endings,
    *,
    now: int,
) -> int | None:
    """Return when a lane is next due: for its probe, at once when it recovered, or for a retry."""
    if health.degraded_since is not None:
        if lane.next_due_at is None or not lane.is_degraded or health.probes > lane.health.probes:
            return now + probe_delay(health.probes)
        return lane.next_due_at
    if lane.is_degraded:
        return await store.earliest_due(conn, lane.webhook_id)
    due = [at for each in group if (at := endings[each.delivery.id][1]) is not None]
    return min([*due, lane.next_due_at] if lane.next_due_at is not None else due, default=None)
