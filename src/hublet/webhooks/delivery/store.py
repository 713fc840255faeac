"""SQL of deliveries: claimed, leased, released, and ended with their attempts."""

import json
from collections.abc import Collection, Iterable, Sequence

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader, Row
from hublet.core.ids import new_object_id
from hublet.core.leases import WorkerClaims, lease_clock
from hublet.webhooks.delivery.records import Ending
from hublet.webhooks.records import (
    Attempt,
    ClaimedDelivery,
    DeliveryState,
    GivenUpReason,
    OutgoingEvent,
    UnsentReason,
)
from hublet.webhooks.triggers.store import repo_snapshot

LEASE = 60_000_000

_CLAIMED = "id, webhook_id, event_id, tries, attempts, ping, due_at"
# The unique key of a delivery, which also names its partition on PostgreSQL.
_KEY = "event_id AS of_event, webhook_id AS of_webhook"
_WAITING = "state = 'pending' AND claimed_by IS NULL"


async def has_fresh(conn: Reader) -> bool:
    found = await conn.fetch_value("SELECT 1 FROM webhook_deliveries WHERE state = 'fresh' LIMIT 1")
    return found is not None


async def claim_fresh(conn: Connection, *, worker: str, limit: int) -> list[Row]:
    """Claim the oldest deliveries that no worker has seen."""
    rows = await conn.claim(
        f"""
        WITH oldest AS (
            SELECT {_KEY} FROM webhook_deliveries WHERE state = 'fresh'
            ORDER BY id LIMIT $1 /* claim */
        )
        UPDATE webhook_deliveries SET state = 'pending', claimed_by = $2, claimed_until = $3
        FROM oldest WHERE event_id = of_event AND webhook_id = of_webhook RETURNING {_CLAIMED}
        """,
        limit, worker, lease_clock() + LEASE,
    )  # fmt: skip
    return sorted(rows, key=lambda row: str(row["id"]))


async def claim_due(conn: Connection, webhook_id: str, *, worker: str, limit: int) -> list[Row]:
    """Claim the deliveries of one webhook that have been due for longest."""
    rows = await conn.claim(
        f"""
        WITH due AS (
            SELECT {_KEY} FROM webhook_deliveries
            WHERE webhook_id = $1 AND {_WAITING} AND due_at <= $2
            ORDER BY due_at, id LIMIT $3 /* claim */
        )
        UPDATE webhook_deliveries SET claimed_by = $4, claimed_until = $5
        FROM due WHERE event_id = of_event AND webhook_id = of_webhook RETURNING {_CLAIMED}
        """,
        webhook_id, micros(), limit, worker, lease_clock() + LEASE,
    )  # fmt: skip
    return sorted(rows, key=lambda row: (row["due_at"], row["id"]))


async def earliest_due(conn: Reader, webhook_id: str) -> int | None:
    due: int | None = await conn.fetch_value(
        f"SELECT min(due_at) FROM webhook_deliveries WHERE webhook_id = $1 AND {_WAITING}",
        webhook_id,
    )
    return due


async def release(conn: Connection, rows: Sequence[Row]) -> None:
    """Release deliveries that were just claimed, for later."""
    await conn.execute(
        """
        UPDATE webhook_deliveries SET claimed_by = NULL, claimed_until = NULL
        WHERE id IN each($1) AND event_id >= $2 AND event_id <= $3
        """,
        _ids(rows), *_span(row["event_id"] for row in rows),
    )  # fmt: skip


async def mark_unsent(conn: Connection, rows: Sequence[Row], reason: UnsentReason) -> None:
    """End deliveries that were just claimed."""
    await conn.execute(
        """
        UPDATE webhook_deliveries
        SET state = 'unsent', reason = $2, finished_at = $3, claimed_by = NULL, claimed_until = NULL
        WHERE id IN each($1) AND event_id >= $4 AND event_id <= $5
        """,
        _ids(rows), reason, micros(), *_span(row["event_id"] for row in rows),
    )  # fmt: skip


async def mark_waiting_unsent(conn: Connection, webhook_id: str, reason: UnsentReason) -> None:
    """End pending deliveries as unsent; what is claimed is left to the worker that claimed it."""
    await conn.execute(
        f"""
        UPDATE webhook_deliveries SET state = 'unsent', reason = $2, finished_at = $3
        WHERE webhook_id = $1 AND {_WAITING}
        """,
        webhook_id, reason, micros(),
    )  # fmt: skip


async def give_up_waiting(conn: Connection, webhook_id: str, *, since: int, limit: int) -> int:
    """Give up what a degraded target has kept waiting since then; return how many.

    What was replayed later is old only by its creation, and is tried at least once.
    """
    return await conn.execute(
        f"""
        UPDATE webhook_deliveries SET state = 'failed', reason = $4, finished_at = $5
        WHERE id IN (
            SELECT id FROM webhook_deliveries
            WHERE webhook_id = $1 AND {_WAITING} AND created_at < $2 AND (tries > 0 OR due_at < $2)
            ORDER BY id LIMIT $3
        ) AND {_WAITING}
        """,
        webhook_id, since, limit, GivenUpReason.exhausted, micros(),
    )  # fmt: skip


async def list_events(conn: Reader, event_ids: Collection[str]) -> dict[str, OutgoingEvent]:
    rows = await conn.fetch_all(
        """
        SELECT id, payload, repo_id, repo_type, repo_name, repo_owner_id, repo_private,
               resource_group_id, trace
        FROM webhook_events WHERE id IN each($1) AND id >= $2 AND id <= $3
        """,
        json.dumps(list(event_ids)), *_span(event_ids),
    )  # fmt: skip
    return {row["id"]: _event_record(row) for row in rows}


async def extend(conn: Connection, delivery_ids: Collection[str], *, worker: str) -> None:
    """Extend the leases on what this worker holds."""
    await conn.execute(
        """
        UPDATE webhook_deliveries SET claimed_until = $1 WHERE id IN each($2) AND claimed_by = $3
        """,
        lease_clock() + LEASE, json.dumps(list(delivery_ids)), worker,
    )  # fmt: skip


async def release_all(conn: Connection, *, worker: str) -> list[str]:
    """Release everything that a stopping or dead worker holds; return the webhook of each."""
    rows = await conn.fetch_all(
        """
        UPDATE webhook_deliveries SET claimed_by = NULL, claimed_until = NULL
        WHERE claimed_by = $1 RETURNING webhook_id
        """,
        worker,
    )
    return [row["webhook_id"] for row in rows]


async def list_claims(conn: Reader) -> list[WorkerClaims]:
    """Return how many deliveries each worker holds now."""
    rows = await conn.fetch_all(
        """
        SELECT claimed_by, count(*), min(claimed_until) FROM webhook_deliveries
        WHERE claimed_by IS NOT NULL GROUP BY claimed_by ORDER BY claimed_by
        """
    )
    return [WorkerClaims(worker=name, count=count, lease_ends=ends) for name, count, ends in rows]


async def count_waiting(conn: Reader) -> int:
    """Count the deliveries that no worker holds and that are to be sent, now or later."""
    fresh: int = await conn.fetch_value(
        "SELECT count(*) FROM webhook_deliveries WHERE state = 'fresh'"
    )
    pending: int = await conn.fetch_value(
        "SELECT count(*) FROM webhook_deliveries WHERE state = 'pending' AND claimed_by IS NULL"
    )
    return fresh + pending


async def has_expired(conn: Reader) -> bool:
    """Tell whether any lease has expired."""
    found = await conn.fetch_value(
        """
        SELECT 1 FROM webhook_deliveries
        WHERE claimed_by IS NOT NULL AND claimed_until < $1 LIMIT 1
        """,
        lease_clock(),
    )
    return found is not None


async def release_expired(conn: Connection, *, except_for: Collection[str]) -> list[str]:
    """Release deliveries whose leases have expired; return the webhook of each."""
    rows = await conn.fetch_all(
        """
        UPDATE webhook_deliveries SET claimed_by = NULL, claimed_until = NULL
        WHERE claimed_by IS NOT NULL AND claimed_until < $1 AND id NOT IN each($2)
        RETURNING webhook_id
        """,
        lease_clock(), json.dumps(list(except_for)),
    )  # fmt: skip
    return [row["webhook_id"] for row in rows]


def delivery_record(row: Row, event: OutgoingEvent) -> ClaimedDelivery:
    return ClaimedDelivery(
        id=row["id"],
        webhook_id=row["webhook_id"],
        event=event,
        tries=row["tries"],
        attempts=row["attempts"],
        ping=bool(row["ping"]),
        due_at=row["due_at"],
    )


def _event_record(row: Row) -> OutgoingEvent:
    return OutgoingEvent(
        id=row["id"],
        payload=row["payload"].encode(),
        repo=repo_snapshot(row),
        trace=row["trace"],
    )


async def end_deliveries(
    conn: Connection, deliveries: Sequence[ClaimedDelivery], ending: Ending, *, worker: str
) -> set[str]:
    """End and release deliveries in the same way; return those that this worker still claimed."""
    is_over = ending.state is not DeliveryState.pending
    rows = await conn.fetch_all(
        """
        UPDATE webhook_deliveries SET state = $3, tries = tries + $5,
            reason = CASE WHEN $3 = 'pending' AND $5 = 0 THEN reason ELSE $4 END,
            attempts = attempts + $5, status = CASE WHEN $5 = 0 THEN status ELSE $6 END,
            finished_at = $7, claimed_by = NULL, claimed_until = NULL
        WHERE id IN each($1) AND claimed_by = $2 AND event_id >= $8 AND event_id <= $9 RETURNING id
        """,
        json.dumps([each.id for each in deliveries]), worker, ending.state, ending.reason,
        ending.tried, ending.status, micros() if is_over else None,
        *_span(each.event.id for each in deliveries),
    )  # fmt: skip
    return {row["id"] for row in rows}


async def set_due(conn: Connection, times: Iterable[tuple[ClaimedDelivery, int]]) -> None:
    await conn.execute_many(
        "UPDATE webhook_deliveries SET due_at = $3 WHERE event_id = $1 AND webhook_id = $2",
        [(each.event.id, each.webhook_id, due_at) for each, due_at in times],
    )


def _span(event_ids: Iterable[str]) -> tuple[str, str]:
    """Return the first and the last event: deliveries lie in partitions by the day of theirs."""
    ids = list(event_ids)
    return min(ids), max(ids)


def _ids(rows: Iterable[Row]) -> str:
    return json.dumps([row["id"] for row in rows])


async def add_attempts(conn: Connection, attempts: Iterable[tuple[str, Attempt]]) -> None:
    """Store attempts, each with the id of its delivery."""
    await conn.execute_many(
        """
        INSERT INTO webhook_attempts
            (id, delivery_id, number, started_at, target, job_id, status, reason, detail,
             dns_micros, connect_micros, tls_micros, first_byte_micros, total_micros, response,
             response_headers)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
        """,
        [
            (
                new_object_id(), delivery_id, a.number, a.started_at, a.target, a.job_id, a.status,
                a.reason, a.detail, a.dns_micros, a.connect_micros, a.tls_micros,
                a.first_byte_micros, a.total_micros, a.response or None,
                json.dumps(dict(a.response_headers)) if a.response_headers else None,
            )
            for delivery_id, a in attempts
        ],
    )  # fmt: skip
