"""Targets of deliveries: a cache of webhooks, and the check whether a delivery may still be sent."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from hublet.core.clock import monotonic, to_micros
from hublet.core.database import Reader, Row
from hublet.core.sealing import SealBroken
from hublet.events import RepoSnapshot
from hublet.repos import service as repos
from hublet.repos import store as repo_rows
from hublet.webhooks import service
from hublet.webhooks.delivery import lanes_store
from hublet.webhooks.delivery.records import DeliveryTarget, split_url
from hublet.webhooks.delivery.signing import key_of
from hublet.webhooks.errors import WebhookNotFound
from hublet.webhooks.records import (
    UNSENT_REASONS,
    ClaimedDelivery,
    UnsentReason,
    WebhookSecrets,
    WebhookState,
)

_CAPACITY = 10_000
_MOMENT_SECONDS = 0.05


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
        creator_id=row["creator_id"],
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
            if targets[each.webhook_id].owner_id not in seen_by:
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
