"""SQL of what became of attempts."""

import json
from collections.abc import Iterable, Sequence

from hublet.core.clock import micros
from hublet.core.database import Connection
from hublet.core.ids import new_object_id
from hublet.webhooks.delivery.records import Attempt, DeliveryState
from hublet.webhooks.delivery.results.endings import Ending


async def end(
    conn: Connection, delivery_ids: Sequence[str], ending: Ending, *, worker: str
) -> set[str]:
    """Let go of deliveries that end alike; return those that this worker still held."""
    is_over = ending.state is not DeliveryState.pending
    rows = await conn.fetch_all(
        """
        UPDATE webhook_deliveries SET state = $3, tries = tries + $5,
            reason = CASE WHEN $3 = 'pending' AND $5 = 0 THEN reason ELSE $4 END,
            attempts = attempts + $5, status = CASE WHEN $5 = 0 THEN status ELSE $6 END,
            finished_at = $7, claimed_by = NULL, claimed_until = NULL
        WHERE id IN each($1) AND claimed_by = $2 RETURNING id
        """,
        json.dumps(delivery_ids), worker, ending.state, ending.reason, ending.tried,
        ending.status, micros() if is_over else None,
    )  # fmt: skip
    return {row["id"] for row in rows}


async def set_due(conn: Connection, times: Iterable[tuple[str, int]]) -> None:
    await conn.execute_many("UPDATE webhook_deliveries SET due_at = $2 WHERE id = $1", times)


async def add_attempts(conn: Connection, attempts: Iterable[tuple[str, Attempt]]) -> None:
    """Keep attempts, each with the id of its delivery."""
    await conn.execute_many(
        """
        INSERT INTO webhook_attempts
            (id, delivery_id, number, started_at, target, job_id, status, reason, detail,
             dns_micros, connect_micros, tls_micros, first_byte_micros, total_micros, response)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
        """,
        [
            (
                new_object_id(), delivery_id, a.number, a.started_at, a.target, a.job_id, a.status,
                a.reason, a.detail, a.dns_micros, a.connect_micros, a.tls_micros,
                a.first_byte_micros, a.total_micros, a.response or None,
            )
            for delivery_id, a in attempts
        ],
    )  # fmt: skip
