"""SQL that reads and prunes the delivery log."""

import json
from collections.abc import Iterable

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader, Row
from hublet.core.ids import id_at
from hublet.webhooks.activity.records import (
    PENDING,
    DeliveryFilter,
    DeliveryPage,
    DeliveryProgress,
    DeliverySummary,
    DeliveryUpdate,
    EventSummary,
)
from hublet.webhooks.records import Attempt, DeliveryState, UnsentReason

# How many deliveries one page examines, however few of them match.
REACH = 2000

_SECOND = 1_000_000
# Ids begin with their time, a moment before `created_at`; they do not follow a clock that is
# turned back.
SLACK = 86_400 * _SECOND

_EVENT = (
    "e.id AS event_id, e.scope, e.action, e.repo_type, e.repo_name, e.created_at AS happened_at"
)
_SUMMARY = f"""
    d.id, d.state, d.reason, d.ping, d.attempts, d.status, d.due_at, d.created_at, d.finished_at,
    {_EVENT}
"""
_ATTEMPT = """
    a.number, a.started_at, a.target, a.job_id, a.status, a.reason, a.detail, a.dns_micros,
    a.connect_micros, a.tls_micros, a.first_byte_micros, a.total_micros, a.response,
    a.response_headers
"""
# An owner without access does not even learn what the event was about.
_VISIBLE = "(d.reason IS NULL OR d.reason <> 'no-access')"
_PROGRESS = "d.id, d.state, d.attempts, d.reason"


async def count_triggers_of_day(conn: Reader, webhook_id: str) -> int:
    """Return the triggers of the current day of the limit, which has 24 hours."""
    count: int | None = await conn.fetch_value(
        "SELECT day_count FROM webhook_lanes WHERE webhook_id = $1 AND day_started_at > $2",
        webhook_id, micros() - 86_400 * _SECOND,
    )  # fmt: skip
    return count or 0


async def list_of(
    conn: Reader, webhook_id: str, filters: DeliveryFilter, *, before: str = "", limit: int
) -> DeliveryPage:
    """Return deliveries, newest first, that are older than the delivery `before`.

    The search for rare ones is limited, so that a page costs the same however long the history is.
    """
    lowest, highest = id_at(filters.since - SLACK), id_at(filters.until + SLACK)
    start = min(before or highest, highest)
    reach = limit if filters == DeliveryFilter() else REACH
    rows = await conn.fetch_all(
        f"""
        SELECT {_SUMMARY}
        FROM (
            SELECT * FROM webhook_deliveries
            WHERE webhook_id = $1 AND id < $2 AND id >= $3 ORDER BY id DESC LIMIT $4
        ) AS d JOIN webhook_events e ON e.id = d.event_id
        WHERE ($5 = '[]' OR d.state IN each($5)) AND ($6 = '' OR d.reason = $6)
          AND ($7 = '' OR (e.scope = $7 AND {_VISIBLE}))
          AND ($8 = '' OR (lower(e.repo_name) = $8 AND {_VISIBLE}))
          AND d.created_at >= $9 AND d.created_at < $10
        ORDER BY d.id DESC LIMIT $11
        """,
        webhook_id, start, lowest, reach, json.dumps(filters.states),
        filters.reason, filters.scope, filters.repo.lower(), filters.since, filters.until, limit,
    )  # fmt: skip
    found = [_summary_record(row) for row in rows]
    if len(found) == limit or reach == limit:
        return DeliveryPage(deliveries=found)
    end: str | None = await conn.fetch_value(
        """
        SELECT id FROM webhook_deliveries WHERE webhook_id = $1 AND id < $2 AND id >= $3
        ORDER BY id DESC LIMIT 1 OFFSET $4
        """,
        webhook_id, start, lowest, reach - 1,
    )  # fmt: skip
    return DeliveryPage(deliveries=found, stopped_at=end)


async def list_newest(conn: Reader, webhook_ids: Iterable[str]) -> dict[str, DeliverySummary]:
    """Return the newest delivery of each webhook that has one."""
    rows = await conn.fetch_all(
        f"""
        SELECT d.webhook_id, {_SUMMARY}
        FROM webhooks h JOIN webhook_deliveries d ON d.id = (
            SELECT n.id FROM webhook_deliveries n WHERE n.webhook_id = h.id ORDER BY n.id DESC LIMIT 1
        ) JOIN webhook_events e ON e.id = d.event_id
        WHERE h.id IN each($1)
        """,
        json.dumps(list(webhook_ids)),
    )
    return {row["webhook_id"]: _summary_record(row) for row in rows}


async def find(
    conn: Reader, webhook_id: str, delivery_id: str
) -> tuple[DeliverySummary, bytes | None] | None:
    """Return a delivery of the webhook and its payload, without the part that names the webhook."""
    row = await conn.fetch_one(
        f"""
        SELECT {_SUMMARY}, e.payload
        FROM webhook_deliveries d JOIN webhook_events e ON e.id = d.event_id
        WHERE d.id = $1 AND d.webhook_id = $2
        """,
        delivery_id, webhook_id,
    )  # fmt: skip
    return (_summary_record(row), _payload(row)) if row else None


async def list_attempts(conn: Reader, delivery_id: str) -> list[Attempt]:
    rows = await conn.fetch_all(
        f"SELECT {_ATTEMPT} FROM webhook_attempts a WHERE a.delivery_id = $1 ORDER BY a.number",
        delivery_id,
    )
    return [_attempt_record(row) for row in rows]


async def find_last_attempt(conn: Reader, delivery_id: str) -> Attempt | None:
    row = await conn.fetch_one(
        f"""
        SELECT {_ATTEMPT} FROM webhook_attempts a
        WHERE a.delivery_id = $1 ORDER BY a.number DESC LIMIT 1
        """,
        delivery_id,
    )
    return _attempt_record(row) if row else None


async def find_newest_attempt(conn: Reader, webhook_id: str) -> Attempt | None:
    """Return the last attempt of the newest delivery that was tried, if that is not long ago."""
    row = await conn.fetch_one(
        f"""
        SELECT {_ATTEMPT} FROM webhook_attempts a WHERE a.delivery_id = (
            SELECT d.id FROM (
                SELECT id, attempts FROM webhook_deliveries
                WHERE webhook_id = $1 ORDER BY id DESC LIMIT $2
            ) AS d WHERE d.attempts > 0 ORDER BY d.id DESC LIMIT 1
        ) ORDER BY a.number DESC LIMIT 1
        """,
        webhook_id, REACH,
    )  # fmt: skip
    return _attempt_record(row) if row else None


async def webhook_exists(conn: Reader, webhook_id: str) -> bool:
    return await conn.fetch_one("SELECT 1 FROM webhooks WHERE id = $1", webhook_id) is not None


async def list_newest_progress(
    conn: Reader, webhook_id: str, *, before: str = "", limit: int
) -> list[DeliveryProgress]:
    rows = await conn.fetch_all(
        f"""
        SELECT {_PROGRESS} FROM webhook_deliveries d
        WHERE d.webhook_id = $1 AND d.id < $2 ORDER BY d.id DESC LIMIT $3
        """,
        webhook_id, before or "g", limit,
    )  # fmt: skip
    return [_progress_record(row) for row in rows]


async def list_due_progress(conn: Reader, webhook_id: str, *, limit: int) -> list[DeliveryProgress]:
    """Return those that are due next; a replay makes an old delivery one of them."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_PROGRESS} FROM webhook_deliveries d
        WHERE d.webhook_id = $1 AND d.state = 'pending' AND d.claimed_by IS NULL
        ORDER BY d.due_at, d.id LIMIT $2
        """,
        webhook_id, limit,
    )  # fmt: skip
    return [_progress_record(row) for row in rows]


async def list_progress(conn: Reader, delivery_ids: Iterable[str]) -> list[DeliveryProgress]:
    rows = await conn.fetch_all(
        f"SELECT {_PROGRESS} FROM webhook_deliveries d WHERE d.id IN each($1)",
        json.dumps(list(delivery_ids)),
    )
    return [_progress_record(row) for row in rows]


async def list_changed_since(conn: Reader, delivery_ids: Iterable[str], *, moment: int) -> set[str]:
    """Return those of the deliveries that have changed since then."""
    rows = await conn.fetch_all(
        """
        SELECT d.id FROM webhook_deliveries d
        WHERE d.id IN each($1) AND (
            d.id >= $2 OR d.finished_at >= $3 OR EXISTS (
                SELECT 1 FROM webhook_attempts a
                WHERE a.delivery_id = d.id AND a.started_at + a.total_micros >= $3
            )
        )
        """,
        json.dumps(list(delivery_ids)), id_at(moment), moment,
    )  # fmt: skip
    return {row["id"] for row in rows}


async def list_updates(conn: Reader, delivery_ids: Iterable[str]) -> list[DeliveryUpdate]:
    """Return deliveries with payload and last attempt, oldest first."""
    ids = json.dumps(list(delivery_ids))
    rows = await conn.fetch_all(
        f"""
        SELECT {_SUMMARY}, e.payload
        FROM webhook_deliveries d JOIN webhook_events e ON e.id = d.event_id
        WHERE d.id IN each($1) ORDER BY d.id
        """,
        ids,
    )
    attempts = await conn.fetch_all(
        f"""
        SELECT a.delivery_id, {_ATTEMPT} FROM webhook_attempts a
        WHERE a.delivery_id IN each($1) AND a.number = (
            SELECT max(l.number) FROM webhook_attempts l WHERE l.delivery_id = a.delivery_id
        )
        """,
        ids,
    )
    last = {row["delivery_id"]: _attempt_record(row) for row in attempts}
    return [
        DeliveryUpdate(
            summary=_summary_record(row), payload=_payload(row), last_attempt=last.get(row["id"])
        )
        for row in rows
    ]


async def remove_finished(
    conn: Connection, *, before: int, after: str = "", limit: int
) -> list[str]:
    """Remove deliveries that ended before this moment, of those behind an id; return which."""
    rows = await conn.fetch_all(
        """
        DELETE FROM webhook_deliveries WHERE id IN (
            SELECT d.id FROM webhook_deliveries d
            WHERE d.id > $1 AND d.id < $2 AND d.event_id < $2 AND d.state NOT IN each($3)
              AND coalesce(d.finished_at, d.created_at) < $4
            ORDER BY d.id LIMIT $5
        )
        RETURNING id
        """,
        after, id_at(before + SLACK), json.dumps(PENDING), before, limit,
    )  # fmt: skip
    removed = [row["id"] for row in rows]
    # On PostgreSQL no foreign key does it.
    await conn.execute(
        "DELETE FROM webhook_attempts WHERE delivery_id IN each($1)", json.dumps(removed)
    )
    return removed


async def remove_unused_events(conn: Connection, *, before: int, limit: int) -> int:
    """Remove events before this moment that have no delivery any more; return how many."""
    return await conn.execute(
        """
        DELETE FROM webhook_events WHERE id IN (
            SELECT e.id FROM webhook_events e
            WHERE e.created_at < $1 AND e.id < $3
              AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.event_id = e.id)
            ORDER BY e.created_at LIMIT $2
        )
        """,
        before, limit, id_at(before + SLACK),
    )  # fmt: skip


def _summary_record(row: Row) -> DeliverySummary:
    return DeliverySummary(
        id=row["id"],
        event=_event_record(row) if _is_visible(row) else None,
        state=DeliveryState(row["state"]),
        reason=row["reason"],
        ping=bool(row["ping"]),
        attempts=row["attempts"],
        status=row["status"],
        due_at=row["due_at"],
        created_at=row["created_at"],
        finished_at=row["finished_at"],
    )


def _is_visible(row: Row) -> bool:
    return bool(row["reason"] != UnsentReason.no_access)


def _event_record(row: Row) -> EventSummary:
    return EventSummary(
        id=row["event_id"],
        scope=row["scope"],
        action=row["action"],
        repo_type=row["repo_type"],
        repo_name=row["repo_name"],
        created_at=row["happened_at"],
    )


def _payload(row: Row) -> bytes | None:
    return row["payload"].encode() if _is_visible(row) else None


def _attempt_record(row: Row) -> Attempt:
    return Attempt(
        number=row["number"],
        started_at=row["started_at"],
        target=row["target"],
        job_id=row["job_id"],
        status=row["status"],
        reason=row["reason"],
        detail=row["detail"],
        dns_micros=row["dns_micros"],
        connect_micros=row["connect_micros"],
        tls_micros=row["tls_micros"],
        first_byte_micros=row["first_byte_micros"],
        total_micros=row["total_micros"],
        response=row["response"] or b"",
        response_headers=json.loads(row["response_headers"] or "{}"),
    )


def _progress_record(row: Row) -> DeliveryProgress:
    state = "pending" if row["state"] in PENDING else row["state"]
    return DeliveryProgress(
        id=row["id"], state=state, attempts=row["attempts"], reason=row["reason"]
    )
