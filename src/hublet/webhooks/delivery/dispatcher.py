"""Dispatcher: sends the deliveries that are next in their lanes, to targets as they are now.

Right before a delivery is sent, its webhook is read again, from a cache that checks versions, and
whether the owner may still see a private repository.
"""

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from hublet.core.clock import monotonic, to_micros
from hublet.core.database import Database, Reader, Row
from hublet.core.retries import is_being_cancelled, retry
from hublet.core.sealing import SealBroken
from hublet.events import RepoSnapshot
from hublet.repos import service as repos
from hublet.repos import store as repo_rows
from hublet.tokens.delegations import delegation_from_text
from hublet.webhooks import service
from hublet.webhooks.delivery import lanes_store
from hublet.webhooks.delivery.committer import MOST_UNWRITTEN, Committer
from hublet.webhooks.delivery.failure_messages import log_failure
from hublet.webhooks.delivery.lanes import Lanes
from hublet.webhooks.delivery.records import DeliveryTarget, split_url
from hublet.webhooks.delivery.sender import Sender, internal_error
from hublet.webhooks.delivery.signing import key_of
from hublet.webhooks.errors import WebhookNotFound
from hublet.webhooks.records import (
    UNSENT_REASONS,
    ClaimedDelivery,
    Outcome,
    UnsentReason,
    WebhookSecrets,
    WebhookState,
    may_hear,
    private_owners_from_text,
)

_CAPACITY = 10_000
_MOMENT_SECONDS = 0.05


class Dispatcher:
    def __init__(
        self,
        database: Database,
        lanes: Lanes,
        committer: Committer,
        *,
        changes: Callable[[], int],
    ) -> None:
        """`changes` returns another number after every commit that may concern webhooks."""
        self._database = database
        self._lanes = lanes
        self._targets = TargetCache()
        self._committer = committer
        self._changes = changes
        self._sender = Sender(database)
        self._turn = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._loop = asyncio.create_task(
            retry(self._run, log_failure=log_failure), name="webhook-sending"
        )

    def wake(self) -> None:
        """Try again: a delivery was added, or there is room to send."""
        self._turn.set()

    async def finish(self) -> None:
        """Wait for the attempts in flight; nothing new may be queued any more."""
        while self._lanes.in_flight:  # noqa: ASYNC110 - only at the end of a worker.
            await asyncio.sleep(0.005)

    async def abandon(self) -> None:
        """Cancel the attempts in flight."""
        running = [*self._running, *([] if self._loop is None else [self._loop])]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._sender.close()

    async def _run(self) -> None:
        while True:
            await self._turn.wait()
            self._turn.clear()
            # Results that are not written would be sent again after a crash: no more than
            # a group or two may wait. The committer calls when there is room again.
            if self._committer.backlog >= MOST_UNWRITTEN:
                continue
            picked = self._lanes.pick()
            if not picked:
                continue
            try:
                await self._launch(picked)
            except BaseException:
                self._put_back(picked)
                self._turn.set()
                raise

    async def _launch(self, picked: Sequence[ClaimedDelivery]) -> None:
        needed = {each.webhook_id for each in picked}
        async with self._database.read() as conn:
            targets = await self._targets.current(conn, needed, since=self._changes())
            present = [each for each in picked if each.webhook_id in targets]
            refused = await find_refusals(conn, present, targets)
        for each in picked:
            self._send_or_not(each, targets, refused.get(each.id))

    def _send_or_not(
        self,
        delivery: ClaimedDelivery,
        targets: Mapping[str, DeliveryTarget],
        refusal: UnsentReason | None,
    ) -> None:
        target = targets.get(delivery.webhook_id)
        if target is None or refusal is not None:
            # A webhook that was deleted has no row left to write to.
            self._finish(Outcome(delivery=delivery, unsent=refusal))
            return
        task = asyncio.create_task(self._send(delivery, target))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _send(self, delivery: ClaimedDelivery, target: DeliveryTarget) -> None:
        try:
            outcome = await self._sender.attempt(delivery, target)
        except (Exception, asyncio.CancelledError) as error:
            if is_being_cancelled():
                self._lanes.release(delivery)
                raise
            log_failure(error)
            outcome = internal_error(delivery, target)
        self._finish(outcome)

    def _finish(self, outcome: Outcome) -> None:
        counts = outcome.attempt is not None and not outcome.delivery.ping
        self._lanes.release(outcome.delivery, failed=counts and not outcome.succeeded)
        self._committer.add(outcome)
        self._turn.set()

    def _put_back(self, picked: Sequence[ClaimedDelivery]) -> None:
        for each in picked:
            self._lanes.put_back(each)


class TargetCache:
    """Webhooks as this worker last read them; a version check decides what is read again."""

    def __init__(self) -> None:
        self._known: dict[str, DeliveryTarget] = {}
        self._checked: set[str] = set()
        self._epoch = (0, 0)

    async def current(
        self, conn: Reader, webhook_ids: Collection[str], *, since: int
    ) -> dict[str, DeliveryTarget]:
        """Return these targets as they are now; those that were deleted are absent.

        Nothing is read again while `since` stays the same, for the moment in which a change
        by another process may go unnoticed.
        """
        epoch = (since, int(monotonic() / _MOMENT_SECONDS))
        if epoch != self._epoch:
            self._epoch = epoch
            self._checked.clear()
        unchecked = [each for each in webhook_ids if each not in self._checked]
        if unchecked:
            await self._check(conn, unchecked)
        known = self._known
        return {each: known[each] for each in webhook_ids if each in known}

    async def _check(self, conn: Reader, webhook_ids: Collection[str]) -> None:
        versions = await lanes_store.list_versions(conn, webhook_ids)
        for deleted in [each for each in webhook_ids if each not in versions]:
            self._known.pop(deleted, None)
        changed = [each for each, version in versions.items() if version != self._version(each)]
        if changed:
            await self._load(conn, changed)
        self._checked.update(webhook_ids)

    def _version(self, webhook_id: str) -> tuple[int, str] | None:
        target = self._known.get(webhook_id)
        return None if target is None else (target.updated_at, target.state)

    async def _load(self, conn: Reader, webhook_ids: Collection[str]) -> None:
        if len(self._known) + len(webhook_ids) > _CAPACITY:
            self._known.clear()
        for row in await lanes_store.list_webhooks(conn, webhook_ids):
            try:
                secrets = await service.secrets_of(conn, row["id"])
            except SealBroken:
                secrets = None
            except WebhookNotFound:
                # It was deleted a moment ago, and its deliveries with it.
                self._known.pop(row["id"], None)
                continue
            self._known[row["id"]] = _target_record(row, secrets)


def _target_record(row: Row, secrets: WebhookSecrets | None) -> DeliveryTarget:
    display_url, host = split_url(row["url"])
    current, old, until = (
        (None, None, None) if secrets is None else (secrets.current, secrets.old, secrets.old_until)
    )
    return DeliveryTarget(
        webhook_id=row["id"],
        owner_id=row["owner_id"],
        delegation=delegation_from_text(row["delegation"], creator_id=row["creator_id"]),
        private_owners=private_owners_from_text(row["private_owners"]),
        state=WebhookState(row["state"]),
        updated_at=row["updated_at"],
        url=row["url"],
        display_url=display_url,
        host=host,
        job=None if row["job"] is None else json.loads(row["job"]),
        job_source_id=row["job_source_id"],
        secrets=secrets,
        key=None if current is None else key_of(current),
        old_key=None if old is None else key_of(old),
        old_key_until=0 if until is None else to_micros(until),
    )


async def find_refusals(
    conn: Reader, deliveries: Iterable[ClaimedDelivery], targets: Mapping[str, DeliveryTarget]
) -> dict[str, UnsentReason]:
    """Return the deliveries, by id, that must not be sent, and why.

    A ping is also sent while its webhook is disabled.
    """
    refused: dict[str, UnsentReason] = {}
    private: dict[str, list[ClaimedDelivery]] = {}
    for each in deliveries:
        state = targets[each.webhook_id].state
        if state is not WebhookState.enabled and not each.ping:
            refused[each.id] = UNSENT_REASONS[state]
        elif each.event.repo.private:
            private.setdefault(each.event.id, []).append(each)
    for group in private.values():
        repo = await _current_snapshot(conn, group[0].event.repo)
        owners = {targets[each.webhook_id].owner_id for each in group}
        seen_by = await repos.who_may_see(conn, repo, owners)
        for each in group:
            target = targets[each.webhook_id]
            if target.owner_id not in seen_by or not may_hear(target.private_owners, repo):
                refused[each.id] = UnsentReason.no_access
    return refused


async def _current_snapshot(conn: Reader, then: RepoSnapshot) -> RepoSnapshot:
    """Return a repository with its current owner; a deleted one stays private to its last owner."""
    repo = await repo_rows.find(conn, then.id)
    if repo is None:
        return then
    return replace(
        then,
        owner_id=repo.owner_id,
        private=repo.is_private,
        resource_group_id=repo.resource_group_id,
    )
