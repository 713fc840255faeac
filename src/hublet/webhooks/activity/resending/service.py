"""Rules of sending again: what may be replayed, recovered and pinged, and what came of it."""

import json
from dataclasses import asdict, replace

from hublet.core import queue
from hublet.core.clock import micros, monotonic
from hublet.core.database import Connection, Database, Subscription
from hublet.webhooks import service as webhooks
from hublet.webhooks.activity import store as deliveries
from hublet.webhooks.activity.errors import (
    DeliveryNotFound,
    DeliveryOutOfSight,
    DeliveryUnderWay,
    InvalidPeriod,
    WebhookNotEnabled,
)
from hublet.webhooks.activity.records import PENDING
from hublet.webhooks.activity.resending import pings, store
from hublet.webhooks.activity.resending.records import Outcome, Recovery
from hublet.webhooks.delivery.records import Unsent
from hublet.webhooks.owners import Owner
from hublet.webhooks.records import ATTEMPTS, State, Webhook

RECOVER = "webhooks.recover"

# So many are put back by whoever asks for it; the worker puts back the rest, in such batches.
BATCH = 1000

# How long an answer waits for the attempt it is to tell of.
PATIENCE_SECONDS = 20.0
# Every attempt is announced; this is how often to look for one whose announcement was lost.
_LOOK_SECONDS = 2.0


async def replay(database: Database, owner: Owner, webhook_id: str, delivery_id: str) -> Outcome:
    """Send a delivery that has ended once more, and wait for what comes of it."""
    with database.subscribe(ATTEMPTS) as bell:
        async with database.transaction() as conn:
            webhook = await webhooks.get(conn, owner, webhook_id)
            _check_enabled(webhook)
            made = await _restart(conn, webhook, delivery_id)
        return await _outcome(database, bell, webhook_id, delivery_id, made=made)


async def _restart(conn: Connection, webhook: Webhook, delivery_id: str) -> int:
    """Return how many attempts were made before."""
    standing = await store.find_standing(conn, webhook.id, delivery_id)
    if standing is None:
        raise DeliveryNotFound(delivery_id)
    if standing.reason == Unsent.no_access:
        raise DeliveryOutOfSight
    if not await store.restart(conn, webhook.id, delivery_id):
        raise DeliveryUnderWay(being_sent=standing.is_claimed)
    return standing.attempts


async def ping(database: Database, owner: Owner, webhook_id: str) -> Outcome:
    """Send something that tells of nothing, whatever the webhook's state, and wait for it."""
    with database.subscribe(ATTEMPTS) as bell:
        async with database.transaction() as conn:
            webhook = await webhooks.get(conn, owner, webhook_id)
            delivery_id = await pings.add(conn, webhook)
        return await _outcome(database, bell, webhook_id, delivery_id, made=0)


async def recover(
    conn: Connection, owner: Owner, webhook_id: str, *, since: int, until: int | None
) -> int:
    """Send everything that failed or was not sent in this time; return how much that is."""
    webhook = await webhooks.get(conn, owner, webhook_id)
    now = micros()
    # What fails from now on is not meant, also when the worker comes to the rest only later.
    recovery = Recovery(webhook_id=webhook.id, since=since, until=min(until or now, now))
    if until is not None and until <= since:
        raise InvalidPeriod
    _check_enabled(webhook)
    count = await store.count_recoverable(conn, recovery)
    await recover_batch(conn, recovery)
    return count


async def recover_batch(conn: Connection, recovery: Recovery) -> None:
    """Put the oldest back, and leave the rest to the next task."""
    put_back = await store.recover(conn, recovery, limit=BATCH)
    if len(put_back) == BATCH:
        rest = replace(recovery, after=put_back[-1])
        await queue.add(conn, queue.NewTask(kind=RECOVER, body=json.dumps(asdict(rest))))


def _check_enabled(webhook: Webhook) -> None:
    if webhook.state is not State.enabled:
        raise WebhookNotEnabled(webhook.state)


async def _outcome(
    database: Database, bell: Subscription, webhook_id: str, delivery_id: str, *, made: int
) -> Outcome:
    """Wait for the attempt that follows those made before; no transaction is open meanwhile."""
    deadline = monotonic() + PATIENCE_SECONDS
    while True:
        outcome = await _find_outcome(database, webhook_id, delivery_id, made=made)
        left = deadline - monotonic()
        if outcome is not None:
            return outcome
        if left <= 0:
            return Outcome(delivery_id=delivery_id, reason="waiting")
        await bell.wait(timeout=min(left, _LOOK_SECONDS))


async def _find_outcome(
    database: Database, webhook_id: str, delivery_id: str, *, made: int
) -> Outcome | None:
    async with database.read() as conn:
        standing = await store.find_standing(conn, webhook_id, delivery_id)
        if standing is None:
            # The webhook was deleted while it was waited for.
            return Outcome(delivery_id=delivery_id, reason="deleted")
        last = await deliveries.find_last_attempt(conn, delivery_id)
    if standing.attempts > made and last is not None:
        return Outcome(
            delivery_id=delivery_id, status=last.status, reason=last.reason, job_id=last.job_id
        )
    if standing.state in PENDING:
        return None
    return Outcome(delivery_id=delivery_id, reason=standing.reason)
