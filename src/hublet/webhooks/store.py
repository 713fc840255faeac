"""SQL of webhooks as their owners manage them."""

import json
from collections.abc import Sequence

from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.tokens.delegations import delegation_from_text, delegation_to_text
from hublet.webhooks.records import (
    DeliveryState,
    Domain,
    UnsentReason,
    WatchedItem,
    WatchedType,
    WebhookRecord,
    WebhookState,
    private_owners_from_text,
)
from hublet.webhooks.sealed_secrets import SealedSecrets

_COLUMNS = """
    h.id, h.owner_id, h.creator_id, h.url, h.job, h.job_source_id, h.delegation,
    h.private_owners, h.secret_names, h.sealed_secret IS NOT NULL AS has_secret, h.old_secret_until,
    h.watches_repo, h.watches_discussion, h.state, h.created_at, l.last_trigger_at
"""
_FROM = "FROM webhooks h LEFT JOIN webhook_lanes l ON l.webhook_id = h.id"

# Current names; a repository that the owner cannot see any more keeps the name it was added with.
_WATCHED = """
    SELECT w.webhook_id, w.type, w.target,
        coalesce(user_of_repo.name || '/' || r.name, org_of_repo.name || '/' || r.name,
                 u.name, o.name, w.name) AS name,
        coalesce(r.owner_id, u.id, o.id) AS account_id
    FROM webhooks h JOIN webhook_watched w ON w.webhook_id = h.id
    LEFT JOIN repos r ON r.id = w.target AND (
        r.visibility = 'public' OR r.owner_id = h.owner_id OR EXISTS (
            SELECT 1 FROM memberships m
            WHERE m.organization_id = r.owner_id AND m.user_id = h.owner_id
        )
    )
    LEFT JOIN users user_of_repo ON user_of_repo.id = r.owner_id
    LEFT JOIN organizations org_of_repo ON org_of_repo.id = r.owner_id
    LEFT JOIN users u ON u.id = w.target
    LEFT JOIN organizations o ON o.id = w.target
"""


async def list_of(conn: Reader, *, owner_id: str) -> list[WebhookRecord]:
    """Return the webhooks of an owner, oldest first."""
    rows = await conn.fetch_all(
        # Ids of one second from two nodes have no order.
        f"SELECT {_COLUMNS} {_FROM} WHERE h.owner_id = $1 ORDER BY h.created_at, h.id",
        owner_id,
    )
    watched: dict[str, list[WatchedItem]] = {row["id"]: [] for row in rows}
    for row in await conn.fetch_all(
        f"{_WATCHED} WHERE h.owner_id = $1 ORDER BY w.webhook_id, w.position", owner_id
    ):
        # A webhook may have been added or deleted between the two statements.
        watched.get(row["webhook_id"], []).append(_watched_record(row))
    return [_webhook_record(row, watched[row["id"]]) for row in rows]


async def find(conn: Reader, webhook_id: str, *, owner_id: str) -> WebhookRecord | None:
    row = await conn.fetch_one(
        f"SELECT {_COLUMNS} {_FROM} WHERE h.id = $1 AND h.owner_id = $2", webhook_id, owner_id
    )
    if row is None:
        return None
    watched = await conn.fetch_all(f"{_WATCHED} WHERE h.id = $1 ORDER BY w.position", webhook_id)
    return _webhook_record(row, [_watched_record(each) for each in watched])


async def count_of(conn: Reader, *, owner_id: str) -> int:
    count: int = await conn.fetch_value(
        "SELECT count(*) FROM webhooks WHERE owner_id = $1", owner_id
    )
    return count


async def find_sealed(conn: Reader, webhook_id: str) -> SealedSecrets | None:
    row = await conn.fetch_one(
        """
        SELECT sealed_secret, sealed_old_secret, old_secret_until, sealed_secrets
        FROM webhooks WHERE id = $1
        """,
        webhook_id,
    )
    if row is None:
        return None
    until = row["old_secret_until"]
    return SealedSecrets(
        secret=row["sealed_secret"],
        old_secret=row["sealed_old_secret"],
        old_until=None if until is None else from_micros(until),
        for_job=row["sealed_secrets"],
    )


async def add(conn: Connection, webhook: WebhookRecord, sealed: SealedSecrets) -> None:
    await conn.execute(
        """
        INSERT INTO webhooks
            (id, owner_id, creator_id, state, created_at, updated_at, url, job, job_source_id,
             sealed_secrets, secret_names, sealed_secret, sealed_old_secret, old_secret_until,
             watches_repo, watches_discussion, delegation, private_owners)
        VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
        """,
        webhook.id, webhook.owner_id, webhook.creator_id, webhook.state,
        to_micros(webhook.created_at), *_setting_values(webhook, sealed),
    )  # fmt: skip
    await _add_watched(conn, webhook)


async def update(conn: Connection, webhook: WebhookRecord, sealed: SealedSecrets) -> None:
    """Save everything about a webhook that its owner may change, except its state."""
    await conn.execute(
        """
        UPDATE webhooks SET updated_at = $2, url = $3, job = $4, job_source_id = $5,
            sealed_secrets = $6, secret_names = $7, sealed_secret = $8, sealed_old_secret = $9,
            old_secret_until = $10, watches_repo = $11, watches_discussion = $12, delegation = $13,
            private_owners = $14
        WHERE id = $1
        """,
        webhook.id, micros(), *_setting_values(webhook, sealed),
    )  # fmt: skip
    await conn.execute("DELETE FROM webhook_watched WHERE webhook_id = $1", webhook.id)
    await _add_watched(conn, webhook)


def _setting_values(webhook: WebhookRecord, sealed: SealedSecrets) -> Sequence[object]:
    return (
        webhook.url,
        None if webhook.job is None else json.dumps(webhook.job),
        webhook.job_source_id,
        sealed.for_job,
        json.dumps(webhook.secret_names),
        sealed.secret,
        sealed.old_secret,
        None if sealed.old_until is None else to_micros(sealed.old_until),
        Domain.repo in webhook.domains,
        Domain.discussion in webhook.domains,
        None if webhook.delegation is None else delegation_to_text(webhook.delegation),
        None if webhook.private_owners is None else json.dumps(sorted(webhook.private_owners)),
    )


async def _add_watched(conn: Connection, webhook: WebhookRecord) -> None:
    await conn.execute_many(
        """
        INSERT INTO webhook_watched (webhook_id, position, type, name, target)
        VALUES ($1, $2, $3, $4, $5)
        """,
        [
            (webhook.id, position, each.type, each.name, each.target)
            for position, each in enumerate(webhook.watched)
        ],
    )


async def set_state(conn: Connection, webhook_id: str, state: WebhookState) -> None:
    await conn.execute(
        "UPDATE webhooks SET state = $2, updated_at = $3 WHERE id = $1", webhook_id, state, micros()
    )


async def withdraw_deliveries(conn: Connection, webhook_id: str) -> None:
    """End unclaimed deliveries as unsent; the worker that has claimed the rest sees the state."""
    await conn.execute(
        """
        UPDATE webhook_deliveries SET state = $2, reason = $3, finished_at = $4
        WHERE id IN (
            SELECT id FROM webhook_deliveries
            WHERE webhook_id = $1 AND state IN ('fresh', 'pending') AND claimed_by IS NULL
            ORDER BY id /* claim */
        )
        """,
        webhook_id, DeliveryState.unsent, UnsentReason.disabled, micros(),
    )  # fmt: skip


async def reset_health(conn: Connection, webhook_id: str) -> None:
    """Reset the health of the target; pending deliveries are tried now."""
    await conn.execute(
        """
        UPDATE webhook_lanes SET failures = 0, failing_since = NULL, degraded_since = NULL,
            probes = 0, exhausted = 0, first_exhausted_at = NULL, last_exhausted_at = NULL,
            told = NULL, next_due_at = CASE WHEN next_due_at IS NULL THEN NULL ELSE CAST($2 AS BIGINT) END
        WHERE webhook_id = $1
        """,
        webhook_id, micros(),
    )  # fmt: skip


async def remove(conn: Connection, webhook_id: str) -> None:
    # On PostgreSQL no foreign key removes attempts. Then deliveries, in the order in which workers
    # lock them; the rest goes with the webhook.
    await conn.execute(
        """
        DELETE FROM webhook_attempts WHERE delivery_id IN (
            SELECT id FROM webhook_deliveries WHERE webhook_id = $1
        )
        """,
        webhook_id,
    )
    await conn.execute("DELETE FROM webhook_deliveries WHERE webhook_id = $1", webhook_id)
    await conn.execute("DELETE FROM webhooks WHERE id = $1", webhook_id)


def _webhook_record(row: Row, watched: Sequence[WatchedItem]) -> WebhookRecord:
    triggered, old_until = row["last_trigger_at"], row["old_secret_until"]
    watches = {Domain.repo: row["watches_repo"], Domain.discussion: row["watches_discussion"]}
    return WebhookRecord(
        id=row["id"],
        owner_id=row["owner_id"],
        creator_id=row["creator_id"],
        url=row["url"],
        job=None if row["job"] is None else json.loads(row["job"]),
        job_source_id=row["job_source_id"],
        delegation=None
        if row["url"] is not None
        else delegation_from_text(row["delegation"], creator_id=row["creator_id"]),
        private_owners=private_owners_from_text(row["private_owners"]),
        secret_names=tuple(json.loads(row["secret_names"])),
        has_secret=bool(row["has_secret"]),
        old_secret_until=from_micros(old_until) if old_until and old_until > micros() else None,
        watched=tuple(watched),
        domains=tuple(domain for domain, is_watched in watches.items() if is_watched),
        state=WebhookState(row["state"]),
        created_at=from_micros(row["created_at"]),
        last_trigger_at=None if triggered is None else from_micros(triggered),
    )


def _watched_record(row: Row) -> WatchedItem:
    return WatchedItem(
        type=WatchedType(row["type"]),
        name=row["name"],
        target=row["target"],
        account_id=row["account_id"],
    )
