"""SQL of lanes: the webhook behind each one, its health, and when it is next due.

`next_due_at` is changed only with the row locked, so that it is never later than the earliest
unclaimed delivery of the lane is due; only a degraded lane waits for its probe.
"""

import json
from collections.abc import Collection, Iterable, Mapping

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader, Row
from hublet.webhooks.delivery.health import Health
from hublet.webhooks.delivery.records import StoredLane, split_url
from hublet.webhooks.records import WebhookState

_DAY = 86_400_000_000

_LANE = """
    webhook_id, next_due_at, day_count, last_success_at, failures, failing_since, degraded_since,
    probes, exhausted, first_exhausted_at, last_exhausted_at, told
"""
_URL = "(SELECT url FROM webhooks WHERE id = webhook_id) AS url"


async def list_versions(conn: Reader, webhook_ids: Iterable[str]) -> dict[str, tuple[int, str]]:
    """Return when each webhook was last changed, and its state; the deleted ones are absent."""
    rows = await conn.fetch_all(
        "SELECT id, updated_at, state FROM webhooks WHERE id IN each($1)", _json(webhook_ids)
    )
    return {row["id"]: (row["updated_at"], row["state"]) for row in rows}


async def list_webhooks(conn: Reader, webhook_ids: Iterable[str]) -> list[Row]:
    return list(
        await conn.fetch_all(
            """
            SELECT id, owner_id, creator_id, url, job, job_source_id, delegation, private_owners,
                state, updated_at
            FROM webhooks WHERE id IN each($1)
            """,
            _json(webhook_ids),
        )
    )


async def suspend(conn: Connection, webhook_id: str) -> bool:
    """Suspend a webhook; False when it is not enabled or does not exist."""
    return await conn.execute(
        "UPDATE webhooks SET state = $2, updated_at = $3 WHERE id = $1 AND state = $4",
        webhook_id, WebhookState.suspended, micros(), WebhookState.enabled,
    ) == 1  # fmt: skip


async def count_triggers(
    conn: Connection, triggers: Iterable[str], pings: Iterable[str]
) -> dict[str, StoredLane]:
    """Count triggers, one for each time a webhook is named, for its current day; return the lanes.

    A ping does not count. The lanes are locked from here on, and those who count for the same
    webhooks wait: let little follow in the transaction.
    """
    now = micros()
    rows = await conn.fetch_all(
        # In one order, so that two workers never wait for each other.
        f"""
        WITH triggers (id) AS each($1), pings (id) AS each($2),
        counted (id, number) AS (
            SELECT id, sum(number) FROM (
                SELECT id, 1 AS number FROM triggers UNION ALL SELECT id, 0 FROM pings
            ) AS named GROUP BY id
        )
        INSERT INTO webhook_lanes (webhook_id, last_trigger_at, day_started_at, day_count)
        SELECT id, CASE WHEN number > 0 THEN CAST($3 AS BIGINT) END, $3, number
        FROM counted WHERE TRUE ORDER BY id
        ON CONFLICT (webhook_id) DO UPDATE SET
            last_trigger_at = coalesce(excluded.last_trigger_at, webhook_lanes.last_trigger_at),
            day_count = excluded.day_count + CASE WHEN webhook_lanes.day_started_at > $4
                THEN webhook_lanes.day_count ELSE 0 END,
            day_started_at = CASE WHEN webhook_lanes.day_started_at > $4
                THEN webhook_lanes.day_started_at ELSE excluded.day_started_at END
        RETURNING {_LANE}, {_URL}
        """,
        _json(triggers), _json(pings), now, now - _DAY,
    )  # fmt: skip
    return {row["webhook_id"]: _lane_record(row, row["url"]) for row in rows}


async def list_lanes(conn: Reader, webhook_ids: Iterable[str]) -> dict[str, StoredLane]:
    rows = await conn.fetch_all(
        f"SELECT {_LANE}, {_URL} FROM webhook_lanes WHERE webhook_id IN each($1)",
        _json(webhook_ids),
    )
    return {row["webhook_id"]: _lane_record(row, row["url"]) for row in rows}


async def lock_lanes(conn: Connection, webhook_ids: Iterable[str]) -> dict[str, StoredLane]:
    """Lock lanes until this transaction ends, and return them."""
    locked: dict[str, StoredLane] = {}
    for webhook_id in sorted(webhook_ids):
        row = await conn.fetch_one(
            f"UPDATE webhook_lanes SET failures = failures WHERE webhook_id = $1 RETURNING {_LANE}",
            webhook_id,
        )
        if row is not None:
            locked[webhook_id] = _lane_record(row)
    return locked


async def lock_due_lanes(
    conn: Connection, *, except_for: Collection[str], limit: int
) -> dict[str, StoredLane]:
    """Lock the lanes that have been due for longest, except for these, and return them."""
    rows = await conn.claim(
        f"""
        SELECT {_LANE}, {_URL} FROM webhook_lanes
        WHERE next_due_at <= $1 AND webhook_id NOT IN each($2)
        ORDER BY next_due_at LIMIT $3 /* claim */
        """,
        micros(), _json(except_for), limit,
    )  # fmt: skip
    return {row["webhook_id"]: _lane_record(row, row["url"]) for row in rows}


async def next_due(conn: Reader, *, except_for: Collection[str]) -> int | None:
    """Return when the next lane is due, except for these."""
    due: int | None = await conn.fetch_value(
        """
        SELECT next_due_at FROM webhook_lanes
        WHERE next_due_at IS NOT NULL AND webhook_id NOT IN each($1)
        ORDER BY next_due_at LIMIT 1
        """,
        _json(except_for),
    )
    return due


async def set_next_due(conn: Connection, times: Mapping[str, int | None]) -> None:
    if not times:
        return
    await conn.execute_many(
        "UPDATE webhook_lanes SET next_due_at = $2 WHERE webhook_id = $1", sorted(times.items())
    )


async def make_due(conn: Connection, webhook_ids: Iterable[str]) -> None:
    """Make lanes due now; a degraded one keeps the time of its probe."""
    await conn.execute(
        """
        UPDATE webhook_lanes SET next_due_at = $1
        WHERE webhook_id IN each($2) AND (next_due_at IS NULL OR degraded_since IS NULL)
        """,
        micros(), _json(webhook_ids),
    )  # fmt: skip


async def set_health(conn: Connection, healths: Mapping[str, Health]) -> None:
    await conn.execute_many(
        """
        UPDATE webhook_lanes SET last_success_at = $2, failures = $3, failing_since = $4,
            degraded_since = $5, probes = $6, exhausted = $7, first_exhausted_at = $8,
            last_exhausted_at = $9, told = $10
        WHERE webhook_id = $1
        """,
        [
            (
                webhook_id, h.last_success_at, h.failures, h.failing_since, h.degraded_since,
                h.probes, h.exhausted, h.first_exhausted_at, h.last_exhausted_at, h.notified_percent,
            )
            for webhook_id, h in sorted(healths.items())
        ],
    )  # fmt: skip


def _lane_record(row: Row, url: str | None = None) -> StoredLane:
    return StoredLane(
        webhook_id=row["webhook_id"],
        host=split_url(url)[1],
        next_due_at=row["next_due_at"],
        day_count=row["day_count"],
        health=Health(
            last_success_at=row["last_success_at"],
            failures=row["failures"],
            failing_since=row["failing_since"],
            degraded_since=row["degraded_since"],
            probes=row["probes"],
            exhausted=row["exhausted"],
            first_exhausted_at=row["first_exhausted_at"],
            last_exhausted_at=row["last_exhausted_at"],
            notified_percent=row["told"],
        ),
    )


def _json(values: Iterable[str]) -> str:
    return json.dumps(list(values))
