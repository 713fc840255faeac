"""SQL of the audit log. Lines are added and read, never changed."""

import msgspec

from hublet.accounts.audit.records import AuditFilter, AuditLine
from hublet.core.clock import from_micros, to_micros
from hublet.core.database import Connection, Reader, Row

_COLUMNS = "id, organization_id, actor_id, actor_name, action, target, details, address, at"


async def add(conn: Connection, line: AuditLine) -> None:
    await conn.execute(
        f"INSERT INTO audit_log ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        line.id, line.organization_id, line.actor_id, line.actor_name, line.action, line.target,
        msgspec.json.encode(line.details).decode(), line.address, to_micros(line.at),
    )  # fmt: skip


async def list_of(
    conn: Reader,
    organization_id: str,
    asked: AuditFilter,
    *,
    before: str = "",
    limit: int = 50,
) -> list[AuditLine]:
    """Return lines, newest first, that are older than the line `before`.

    Without one it begins with the newest: "g" sorts after every hexadecimal id.
    """
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS} FROM audit_log
        WHERE organization_id = $1 AND id < $2 AND ($3 = '' OR action = $3)
          AND ($4 = '' OR lower(actor_name) = $4) AND at >= $5 AND at < $6
        ORDER BY id DESC LIMIT $7
        """,
        organization_id, before or "g", asked.action, asked.actor.lower(), asked.since,
        asked.until, limit,
    )  # fmt: skip
    return [_record(row) for row in rows]


def _record(row: Row) -> AuditLine:
    return AuditLine(
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
