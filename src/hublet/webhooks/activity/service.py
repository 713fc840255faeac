"""Service of the delivery log: shows a delivery, replays, recovers, pings, and prunes old ones."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta

from hublet.accounts.users import service as accounts
from hublet.core import clock, queue
from hublet.core.clock import micros, monotonic
from hublet.core.database import Connection, Database, Reader, Subscription, partitions
from hublet.core.ids import new_object_id
from hublet.events import RepoSnapshot
from hublet.repos import service as repos
from hublet.repos import store as repo_rows
from hublet.repos.records import Repo, RepoType
from hublet.webhooks import service as webhooks
from hublet.webhooks.activity import partitions_store, resend_store, statistics_store, store
from hublet.webhooks.activity.records import (
    PENDING,
    ActivitySummary,
    DeliveryDetails,
    DeliveryFilter,
    DeliveryPage,
    DeliveryStatistics,
    DeliverySummary,
    HealthState,
    HourCount,
    Recovery,
    SendResult,
    WebhookHealth,
)
from hublet.webhooks.delivery import lanes_store
from hublet.webhooks.delivery.records import StoredLane
from hublet.webhooks.errors import (
    DeliveryInProgress,
    DeliveryNotFound,
    DeliveryNotVisible,
    InvalidPeriod,
    WebhookNotEnabled,
)
from hublet.webhooks.records import (
    ATTEMPTS_CHANNEL,
    DeliveryState,
    Domain,
    UnsentReason,
    WatchedItem,
    WebhookAccess,
    WebhookRecord,
    WebhookState,
    may_hear,
)
from hublet.webhooks.triggers import payload
from hublet.webhooks.triggers import store as triggers
from hublet.webhooks.triggers.records import NewDelivery, Trigger

PING_SCOPE = "ping"
PING_ACTION = "update"
# Client contract 2.1: the public receiver takes no other types.
_PING_TYPES = (RepoType.model, RepoType.dataset, RepoType.space)
# So many of an account's repositories are examined for one that the webhook's owner may see.
_MOST_CANDIDATES = 20
RECOVER = "webhooks.recover"
# So many are restarted in the request; the worker restarts the rest, in such batches.
RECOVER_BATCH = 1000
# How long a response waits for the attempt.
PATIENCE_SECONDS = 20.0
# Every commit of attempts wakes the waiting; this is how often to read in case that was lost.
_POLL_SECONDS = 2.0
_DAY = 86_400_000_000
_HEALTH_STATES = {
    WebhookState.disabled: HealthState.paused,
    WebhookState.suspended: HealthState.suspended,
}
PRUNE = "webhooks.prune"
PRUNE_INTERVAL = timedelta(days=1)
PRUNE_BATCH = 1000


async def get_activity(conn: Reader, webhook: WebhookRecord) -> ActivitySummary:
    delegation = webhook.delegation
    return ActivitySummary(
        secret_names=webhook.secret_names,
        runs_as=None if delegation is None else await _user_name(conn, delegation.user_id),
        triggers=await store.count_triggers_of_day(conn, webhook.id),
        daily_limit=conn.hub.settings.webhooks.daily_triggers,
    )


async def _user_name(conn: Reader, user_id: str) -> str:
    return (await accounts.get_user_by_id(conn, user_id)).name


async def list_health(conn: Reader, found: Sequence[WebhookRecord]) -> dict[str, WebhookHealth]:
    """Return how each of these webhooks fares."""
    ids = [webhook.id for webhook in found]
    lanes = await lanes_store.list_lanes(conn, ids)
    newest = await store.list_newest(conn, ids)
    return {each.id: _health_of(each, lanes.get(each.id), newest.get(each.id)) for each in found}


def _health_of(
    webhook: WebhookRecord, lane: StoredLane | None, newest: DeliverySummary | None
) -> WebhookHealth:
    is_degraded = lane is not None and lane.is_degraded
    state = _HEALTH_STATES.get(
        webhook.state, HealthState.degraded if is_degraded else HealthState.well
    )
    if lane is None:
        return WebhookHealth(state=state, newest=newest)
    return WebhookHealth(
        state=state, target=lane.health, next_attempt_at=lane.next_due_at, newest=newest
    )


async def list_hours(conn: Reader, found: Sequence[WebhookRecord]) -> Mapping[str, list[HourCount]]:
    """Return the deliveries of the last 24 hours by hour, for each of these webhooks."""
    return await statistics_store.count_by_hour(
        conn, [webhook.id for webhook in found], since=micros() - _DAY
    )


async def get_statistics(conn: Reader, webhook: WebhookRecord) -> DeliveryStatistics:
    hours = await list_hours(conn, [webhook])
    return DeliveryStatistics(
        hours=hours.get(webhook.id, []),
        latencies=await statistics_store.list_latencies(conn, webhook.id, since=micros() - _DAY),
        newest_attempt=await store.find_newest_attempt(conn, webhook.id),
        counts=await statistics_store.count_by_state(conn, webhook.id),
        version=await get_version(conn, webhook),
    )


async def get_version(conn: Reader, webhook: WebhookRecord) -> int:
    """Return a number that changes with whatever the pages of a webhook show."""
    return (await statistics_store.list_versions(conn, [webhook.id])).get(webhook.id, 0)


async def get_owner_version(conn: Reader, access: WebhookAccess) -> int:
    """Return a number that changes with whatever the list of an owner's webhooks shows."""
    owner_id = access.owner.id
    return (await statistics_store.list_owner_versions(conn, [owner_id])).get(owner_id, 0)


async def list_deliveries(
    conn: Reader, webhook: WebhookRecord, filters: DeliveryFilter, *, before: str, limit: int
) -> DeliveryPage:
    """Return deliveries of this webhook, newest first; see `store.list_of` for how far it looks."""
    return await store.list_of(conn, webhook.id, filters, before=before, limit=limit)


async def get_delivery(conn: Reader, webhook: WebhookRecord, delivery_id: str) -> DeliveryDetails:
    """Return a delivery of this webhook with its payload and attempts."""
    found = await store.find(conn, webhook.id, delivery_id)
    if found is None:
        raise DeliveryNotFound(delivery_id)
    summary, body = found
    return DeliveryDetails(
        summary=summary, payload=body, attempts=await store.list_attempts(conn, delivery_id)
    )


async def replay(
    database: Database, access: WebhookAccess, webhook_id: str, delivery_id: str
) -> SendResult:
    """Send a delivery that has ended again, and wait for the result."""
    with database.subscribe(ATTEMPTS_CHANNEL) as attempts:
        async with database.transaction() as conn:
            webhook = await webhooks.get_to_send(conn, access, webhook_id)
            _check_enabled(webhook)
            made = await _restart(conn, webhook, delivery_id)
        return await _wait_for_result(database, attempts, webhook_id, delivery_id, made=made)


async def _restart(conn: Connection, webhook: WebhookRecord, delivery_id: str) -> int:
    """Return how many attempts were made before."""
    status = await resend_store.find_status(conn, webhook.id, delivery_id)
    if status is None:
        raise DeliveryNotFound(delivery_id)
    if status.reason == UnsentReason.no_access:
        raise DeliveryNotVisible
    if not await resend_store.restart(conn, webhook.id, delivery_id):
        raise DeliveryInProgress(being_sent=status.is_claimed)
    return status.attempts


async def replay_some(
    conn: Connection, access: WebhookAccess, webhook_id: str, delivery_ids: Sequence[str]
) -> int:
    """Send these deliveries again that have ended, without waiting; return how many."""
    webhook = await webhooks.get_to_send(conn, access, webhook_id)
    _check_enabled(webhook)
    restarted = 0
    for delivery_id in dict.fromkeys(delivery_ids):
        restarted += await resend_store.restart(conn, webhook.id, delivery_id)
    return restarted


async def ping(database: Database, access: WebhookAccess, webhook_id: str) -> SendResult:
    """Send an event that stands for no change, whatever the webhook's state, and wait for it."""
    with database.subscribe(ATTEMPTS_CHANNEL) as attempts:
        async with database.transaction() as conn:
            webhook = await webhooks.get_to_send(conn, access, webhook_id)
            delivery_id = await add_ping(conn, webhook)
        return await _wait_for_result(database, attempts, webhook_id, delivery_id, made=0)


async def add_ping(conn: Connection, webhook: WebhookRecord) -> str:
    """Add the delivery of a ping; return its id."""
    repo = await _find_ping_repo(conn, webhook)
    parts = {"repo": payload.render_repo(repo, conn.hub.settings.base_url)}
    trigger = Trigger(
        domain=Domain.repo,
        scope=PING_SCOPE,
        action=PING_ACTION,
        repo=repo,
        targets=(),
        payload=payload.render(PING_SCOPE, PING_ACTION, parts),
    )
    delivery = NewDelivery(webhook_id=webhook.id, state=DeliveryState.fresh, ping=True)
    [delivery_id] = await triggers.add_deliveries(
        conn, await triggers.add_event(conn, trigger), [delivery]
    )
    return delivery_id


async def _find_ping_repo(conn: Reader, webhook: WebhookRecord) -> RepoSnapshot:
    for watched in webhook.watched:
        found = await _list_candidates(conn, watched)
        for repo in map(repos.snapshot, found):
            if not may_hear(webhook.private_owners, repo):
                continue
            if await repos.who_may_see(conn, repo, [webhook.owner_id]):
                return repo
    return _placeholder_repo(webhook)


async def _list_candidates(conn: Reader, watched: WatchedItem) -> list[Repo]:
    if not watched.type.is_account:
        repo = await repo_rows.find(conn, watched.target)
        return [] if repo is None else [repo]
    found = [
        repo
        for each in _PING_TYPES
        for repo in await resend_store.list_newest_repos(
            conn, watched.target, each, limit=_MOST_CANDIDATES
        )
    ]
    return sorted(found, key=lambda repo: repo.created_at, reverse=True)


def _placeholder_repo(webhook: WebhookRecord) -> RepoSnapshot:
    """Return a repository that does not exist, under the first name that is watched."""
    first = webhook.watched[0]
    return RepoSnapshot(
        id=new_object_id(),
        type=RepoType.model if first.type.is_account else first.type,
        name=f"{first.name}/ping" if first.type.is_account else first.name,
        owner_id=first.account_id or webhook.owner_id,
        private=False,
    )


async def recover(
    conn: Connection, access: WebhookAccess, webhook_id: str, *, since: int, until: int | None
) -> int:
    """Send again what failed or was not sent in this time; return how many deliveries."""
    webhook = await webhooks.get_to_send(conn, access, webhook_id)
    now = micros()
    # Not what fails from now on, also when the worker restarts the rest only later.
    recovery = Recovery(webhook_id=webhook.id, since=since, until=min(until or now, now))
    if until is not None and until <= since:
        raise InvalidPeriod
    _check_enabled(webhook)
    count = await resend_store.count_recoverable(conn, recovery)
    await recover_batch(conn, recovery)
    return count


async def recover_batch(conn: Connection, recovery: Recovery) -> None:
    """Restart the oldest, and leave the rest to the next task."""
    restarted = await resend_store.recover(conn, recovery, limit=RECOVER_BATCH)
    if len(restarted) == RECOVER_BATCH:
        rest = replace(recovery, after=restarted[-1])
        await queue.add(conn, queue.NewTask(kind=RECOVER, body=json.dumps(asdict(rest))))


def _check_enabled(webhook: WebhookRecord) -> None:
    if webhook.state is not WebhookState.enabled:
        raise WebhookNotEnabled(webhook.state)


async def _wait_for_result(
    database: Database, attempts: Subscription, webhook_id: str, delivery_id: str, *, made: int
) -> SendResult:
    """Wait for the attempt that follows those made before; no transaction is open meanwhile."""
    deadline = monotonic() + PATIENCE_SECONDS
    while True:
        outcome = await _find_result(database, webhook_id, delivery_id, made=made)
        left = deadline - monotonic()
        if outcome is not None:
            return outcome
        if left <= 0:
            return SendResult(delivery_id=delivery_id, reason="waiting")
        await attempts.wait(timeout=min(left, _POLL_SECONDS))


async def _find_result(
    database: Database, webhook_id: str, delivery_id: str, *, made: int
) -> SendResult | None:
    async with database.read() as conn:
        status = await resend_store.find_status(conn, webhook_id, delivery_id)
        if status is None:
            # The webhook was deleted meanwhile.
            return SendResult(delivery_id=delivery_id, reason="deleted")
        last = await store.find_last_attempt(conn, delivery_id)
    if status.attempts > made and last is not None:
        return SendResult(
            delivery_id=delivery_id, status=last.status, reason=last.reason, job_id=last.job_id
        )
    if status.state in PENDING:
        return None
    return SendResult(delivery_id=delivery_id, reason=status.reason)


async def schedule_pruning(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    """Queue the removal of old deliveries, once a day however often this is called."""
    await queue.add_daily(conn, PRUNE, delay=delay)


async def prune(database: Database) -> None:
    async with database.transaction() as conn:
        await schedule_pruning(conn, delay=PRUNE_INTERVAL)
    retention = timedelta(days=database.hub.settings.webhooks.retention_days)
    before = clock.to_micros(clock.now() - retention)
    await partitions.add_days(database, partitions_store.TABLES)
    await partitions_store.drop_days(database, before=before)
    await _remove_deliveries(database, before)
    await _remove_events(database, before)


async def _remove_deliveries(database: Database, before: int) -> None:
    """Remove them in batches with a transaction each, so that nobody waits for all of them."""
    last = ""
    while True:
        async with database.transaction() as conn:
            removed = await store.remove_finished(
                conn, before=before, after=last, limit=PRUNE_BATCH
            )
        if len(removed) < PRUNE_BATCH:
            return
        last = max(removed)


async def _remove_events(database: Database, before: int) -> None:
    while True:
        async with database.transaction() as conn:
            removed = await store.remove_unused_events(conn, before=before, limit=PRUNE_BATCH)
        if removed < PRUNE_BATCH:
            return
