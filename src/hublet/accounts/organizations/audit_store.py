"""Audit log of an organization: append-only, written in the transaction of each change."""

from collections.abc import Mapping
from typing import Any

import msgspec

from hublet.accounts.records import Actor, AuditEntry, AuditFilter
from hublet.core.clock import from_micros, now, to_micros
from hublet.core.database import Connection, Reader, Row, like_pattern
from hublet.core.ids import new_object_id

_AUDIT_COLUMNS = "id, organization_id, actor_id, actor_name, action, target, details, address, at"


async def record(
    conn: Connection,
    organization_id: str,
    actor: Actor,
    action: str,
    *,
    target: str,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Add a line in the transaction of the change it describes: both are committed, or neither."""
    line = AuditEntry(
        id=new_object_id(),
        organization_id=organization_id,
        actor_id=actor.id,
        actor_name=actor.name,
        action=action,
        target=target,
        details=dict(details or {}),
        address=actor.address,
        at=now(),
    )
    await _add(conn, line)


async def _add(conn: Connection, line: AuditEntry) -> None:
    await conn.execute(
        f"INSERT INTO audit_log ({_AUDIT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        line.id, line.organization_id, line.actor_id, line.actor_name, line.action, line.target,
        msgspec.json.encode(line.details).decode(), line.address, to_micros(line.at),
    )  # fmt: skip


async def list_of(
    conn: Reader,
    organization_id: str,
    audit_filter: AuditFilter,
    *,
    before: str = "",
    limit: int = 50,
) -> list[AuditEntry]:
    """Return the lines that are older than the line `before`, newest first.

    Without `before` the newest line comes first: "g" sorts after every hexadecimal id.
    """
    rows = await conn.fetch_all(
        f"""
        SELECT {_AUDIT_COLUMNS} FROM audit_log
        WHERE organization_id = $1 AND id < $2
          AND ($3 = '' OR action = $3 OR action LIKE $3 || '.%')
          AND ($4 = '' OR lower(actor_name) = $4) AND at >= $5 AND at < $6
          AND ($8 = '' OR lower(target) LIKE $8 ESCAPE '~' OR lower(details) LIKE $8 ESCAPE '~')
        ORDER BY id DESC LIMIT $7
        """,
        organization_id, before or "g", audit_filter.action, audit_filter.actor.lower(),
        audit_filter.since, audit_filter.until, limit,
        like_pattern(audit_filter.search.lower()) if audit_filter.search else "",
    )  # fmt: skip
    return [_audit_entry(row) for row in rows]


def _audit_entry(row: Row) -> AuditEntry:
    return AuditEntry(
        id=row["id"],
        organization_id=row["organization_id"],
        actor_id=row["actor_id"],
        actor_name=row["actor_name"],
        action=row["action"],
        target=row["target"],
        details=msgspec.json.decode(row["details"]),
        address=row["address"],
        at=from_micros(row["at"]),
    )
