"""Targets as they are now, read anew only when their webhook has changed."""

import json
from collections.abc import Collection

from hublet.core.clock import monotonic, to_micros
from hublet.core.database import Reader, Row
from hublet.core.sealing import SealBroken
from hublet.webhooks import service
from hublet.webhooks.delivery.signing import key_of
from hublet.webhooks.delivery.targets import store
from hublet.webhooks.delivery.targets.records import Target, split_url
from hublet.webhooks.errors import WebhookNotFound
from hublet.webhooks.records import Secrets, State

_MOST = 10_000
_MOMENT_SECONDS = 0.05


class Targets:
    def __init__(self) -> None:
        self._known: dict[str, Target] = {}
        self._checked: set[str] = set()
        self._epoch = (0, 0)

    async def current(
        self, conn: Reader, webhook_ids: Collection[str], *, since: int
    ) -> dict[str, Target]:
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
        versions = await store.list_versions(conn, webhook_ids)
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
        if len(self._known) + len(webhook_ids) > _MOST:
            self._known.clear()
        for row in await store.list_webhooks(conn, webhook_ids):
            try:
                secrets = await service.secrets_of(conn, row["id"])
            except SealBroken:
                secrets = None
            except WebhookNotFound:
                # It was deleted a moment ago, and its deliveries with it.
                self._known.pop(row["id"], None)
                continue
            self._known[row["id"]] = _target(row, secrets)


def _target(row: Row, secrets: Secrets | None) -> Target:
    shown, host = split_url(row["url"])
    current, old, until = (
        (None, None, None) if secrets is None else (secrets.current, secrets.old, secrets.old_until)
    )
    return Target(
        webhook_id=row["id"],
        owner_id=row["owner_id"],
        creator_id=row["creator_id"],
        state=State(row["state"]),
        updated_at=row["updated_at"],
        url=row["url"],
        shown=shown,
        host=host,
        job=None if row["job"] is None else json.loads(row["job"]),
        job_source_id=row["job_source_id"],
        secrets=secrets,
        key=None if current is None else key_of(current),
        old_key=None if old is None else key_of(old),
        old_key_until=0 if until is None else to_micros(until),
    )
