"""Audit logs of organizations and of the hub: written in the transaction of each change."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
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
    line = new_entry(organization_id, actor, action, target=target, details=details)
    await record_many(conn, [line])


def new_entry(
    organization_id: str,
    actor: Actor,
    action: str,
    *,
    target: str,
    details: Mapping[str, Any] | None = None,
) -> AuditEntry:
    return AuditEntry(
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


async def record_many(conn: Connection, lines: Iterable[AuditEntry]) -> None:
    """Add lines in the transaction of the changes that they describe."""
    await conn.execute_many(
        f"INSERT INTO audit_log ({_AUDIT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        [
            (
                line.id, line.organization_id, line.actor_id, line.actor_name, line.action,
                line.target, msgspec.json.encode(line.details).decode(), line.address,
                to_micros(line.at),
            )
            for line in lines
        ],
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
          AND ($9 = '' OR address = $9)
        ORDER BY id DESC LIMIT $7
        """,
        organization_id, before or "g", audit_filter.action, audit_filter.actor.lower(),
        audit_filter.since, audit_filter.until, limit,
        like_pattern(audit_filter.search.lower()) if audit_filter.search else "",
        audit_filter.address,
    )  # fmt: skip
    return [_audit_entry(row) for row in rows]


_WORD = re.compile(r"(author|ip|type):(\S+)|(\S+)")


def parse_query(text: str) -> AuditFilter:
    """Read a query such as `author:ada type:repo.create engine`: fields, and words to search for."""
    fields: dict[str, str] = {}
    words: list[str] = []
    for name, value, word in _WORD.findall(text):
        if name:
            fields[name] = value
        else:
            words.append(word)
    return AuditFilter(
        action=fields.get("type", ""),
        actor=fields.get("author", ""),
        address=fields.get("ip", ""),
        search=" ".join(words),
    )


async def list_of_all(conn: Reader, *, before: str = "", limit: int = 50) -> list[AuditEntry]:
    """Return the lines of all organizations that are older than the line `before`, newest first."""
    rows = await conn.fetch_all(
        f"SELECT {_AUDIT_COLUMNS} FROM audit_log WHERE id < $1 ORDER BY id DESC LIMIT $2",
        before or "g", limit,
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


SIGN_IN = "sign-in"
_HUB_COLUMNS = "id, actor_id, actor_name, action, target, details, address, at"
# Sign-ins tell where people are: they are not kept for ever, as what administrators do is.
_SIGN_INS_KEPT = timedelta(days=90)


async def record_for_hub(
    conn: Connection,
    actor: Actor,
    action: str,
    *,
    target: str,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Add a line about the hub itself, in the transaction of the change it describes."""
    await conn.execute(
        f"INSERT INTO hub_activity ({_HUB_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        new_object_id(), actor.id, actor.name, action, target,
        msgspec.json.encode(dict(details or {})).decode(), actor.address, to_micros(now()),
    )  # fmt: skip


async def record_sign_in(conn: Connection, actor: Actor) -> None:
    """Add a line for a person who signed in; drop those that are too old."""
    await conn.execute(
        "DELETE FROM hub_activity WHERE action = $1 AND at < $2",
        SIGN_IN, to_micros(now() - _SIGN_INS_KEPT),
    )  # fmt: skip
    await record_for_hub(conn, actor, SIGN_IN, target=actor.name)


async def list_of_hub(
    conn: Reader, *, sign_ins: bool, before: str = "", limit: int = 50
) -> list[AuditEntry]:
    """Return who signed in, or what administrators did, newest first."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_HUB_COLUMNS}, '' AS organization_id FROM hub_activity
        WHERE id < $1 AND (action = $2) = $3 ORDER BY id DESC LIMIT $4
        """,
        before or "g", SIGN_IN, sign_ins, limit,
    )  # fmt: skip
    return [_audit_entry(row) for row in rows]


async def last_sign_ins(conn: Reader, user_ids: Iterable[str]) -> dict[str, datetime]:
    """Return when each of these users signed in last, as far as that is kept."""
    rows = await conn.fetch_all(
        """
        SELECT actor_id, max(at) AS at FROM hub_activity
        WHERE action = $1 AND actor_id IN each($2) GROUP BY actor_id
        """,
        SIGN_IN, msgspec.json.encode(list(user_ids)).decode(),
    )  # fmt: skip
    return {row["actor_id"]: from_micros(row["at"]) for row in rows}
