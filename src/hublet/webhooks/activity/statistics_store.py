"""SQL of statistics about deliveries: counts by hour and by state, latencies, versions.

Every statement reads a range of the index of a webhook's deliveries, whose ids begin with their time,
and no more than a number of its newest ones: a page costs the same however much was delivered.
"""

import json
from collections import defaultdict
from collections.abc import Collection
from zlib import crc32

from hublet.core.database import Reader
from hublet.core.ids import id_at
from hublet.webhooks.activity.records import HourCount, Latency
from hublet.webhooks.records import DeliveryState

HOUR = 3_600_000_000
# So many of the newest deliveries of each webhook count for its hours and its latencies.
MOST_OF_A_DAY = 2000
# And so many for the number in each state.
MOST_COUNTED = 10_000
# What happens to older ones is noticed by what waits.
_MOST_SHOWN = 200

# The lowest id of each webhook that counts: `$1` are the webhooks, `$2` is the lowest id for all of them,
# `$3` how many newer deliveries each of them may have.
_LOWEST = """
    WITH lowest AS MATERIALIZED (
        SELECT h.id AS webhook_id, h.updated_at, coalesce((
            SELECT n.id FROM webhook_deliveries n WHERE n.webhook_id = h.id AND n.id >= $2
            ORDER BY n.id DESC LIMIT 1 OFFSET $3
        ), $2) AS id
        FROM webhooks h WHERE h.id IN each($1)
    )
"""


async def count_by_hour(
    conn: Reader, webhook_ids: Collection[str], *, since: int
) -> dict[str, list[HourCount]]:
    """Return the hours of each webhook in which something was delivered or failed, oldest first."""
    rows = await conn.fetch_all(
        f"""
        {_LOWEST}
        SELECT d.webhook_id, d.created_at / {HOUR} AS hour,
            sum(CASE WHEN d.state = 'delivered' THEN 1 ELSE 0 END) AS delivered,
            sum(CASE WHEN d.state = 'failed' OR (d.state <> 'delivered' AND d.attempts > 0)
                THEN 1 ELSE 0 END) AS failed
        FROM lowest l JOIN webhook_deliveries d ON d.webhook_id = l.webhook_id AND d.id >= l.id
        WHERE NOT d.ping AND d.created_at >= $4
        GROUP BY d.webhook_id, d.created_at / {HOUR} ORDER BY 1, 2
        """,
        json.dumps(list(webhook_ids)), id_at(since), MOST_OF_A_DAY - 1, since,
    )  # fmt: skip
    found: dict[str, list[HourCount]] = defaultdict(list)
    for row in rows:
        found[row["webhook_id"]].append(
            HourCount(
                start=row["hour"] * HOUR, delivered=int(row["delivered"]), failed=int(row["failed"])
            )
        )
    return found


async def list_latencies(conn: Reader, webhook_id: str, *, since: int) -> list[Latency]:
    """Return how long attempts took that got a response, oldest first."""
    rows = await conn.fetch_all(
        """
        SELECT a.started_at, a.total_micros
        FROM (
            SELECT id FROM webhook_deliveries
            WHERE webhook_id = $1 AND id >= $2 ORDER BY id DESC LIMIT $3
        ) AS d JOIN webhook_attempts a ON a.delivery_id = d.id
        WHERE a.started_at >= $4 AND a.status IS NOT NULL ORDER BY a.started_at
        """,
        webhook_id, id_at(since), MOST_OF_A_DAY, since,
    )  # fmt: skip
    return [Latency(started_at=row["started_at"], total=row["total_micros"]) for row in rows]


async def count_by_state(conn: Reader, webhook_id: str) -> dict[DeliveryState, int]:
    rows = await conn.fetch_all(
        """
        SELECT d.state, count(*) AS number FROM (
            SELECT state FROM webhook_deliveries WHERE webhook_id = $1 ORDER BY id DESC LIMIT $2
        ) AS d GROUP BY d.state
        """,
        webhook_id, MOST_COUNTED,
    )  # fmt: skip
    return {DeliveryState(row["state"]): row["number"] for row in rows}


async def list_versions(conn: Reader, webhook_ids: Collection[str]) -> dict[str, int]:
    """Return a number for each webhook that changes with whatever its pages show."""
    rows = await conn.fetch_all(
        f"""
        {_LOWEST}
        SELECT l.webhook_id, l.updated_at, max(d.id) AS newest, max(d.finished_at) AS finished,
            CAST(sum(d.attempts) AS BIGINT) AS attempts,
            CAST(sum(CASE d.state WHEN 'delivered' THEN 1 WHEN 'failed' THEN 1000
                WHEN 'unsent' THEN 1000000 ELSE 0 END) AS BIGINT) AS states,
            (SELECT count(*) FROM (
                SELECT 1 FROM webhook_deliveries p
                WHERE p.webhook_id = l.webhook_id AND p.state = 'pending' AND p.claimed_by IS NULL
                LIMIT $3
            ) AS waiting) AS waiting,
            (SELECT p.id FROM webhook_deliveries p
                WHERE p.webhook_id = l.webhook_id AND p.state = 'pending' AND p.claimed_by IS NULL
                ORDER BY p.due_at, p.id LIMIT 1) AS next,
            (SELECT n.degraded_since FROM webhook_lanes n WHERE n.webhook_id = l.webhook_id) AS degraded
        FROM lowest l LEFT JOIN webhook_deliveries d ON d.webhook_id = l.webhook_id AND d.id >= l.id
        GROUP BY l.webhook_id, l.updated_at
        """,
        json.dumps(list(webhook_ids)), "", _MOST_SHOWN - 1,
    )  # fmt: skip
    return {row["webhook_id"]: crc32(repr(tuple(row)).encode()) for row in rows}


async def list_owner_versions(conn: Reader, owner_ids: Collection[str]) -> dict[str, int]:
    """Return a number for each owner of webhooks that changes with whatever their list shows."""
    rows = await conn.fetch_all(
        """
        SELECT h.owner_id, count(*) AS webhooks, max(h.updated_at) AS updated,
            CAST(sum(l.failures) AS BIGINT) AS failures, count(l.degraded_since) AS degraded,
            max(l.last_trigger_at) AS triggered, max(l.last_success_at) AS succeeded
        FROM webhooks h LEFT JOIN webhook_lanes l ON l.webhook_id = h.id
        WHERE h.owner_id IN each($1) GROUP BY h.owner_id
        """,
        json.dumps(list(owner_ids)),
    )
    return {row["owner_id"]: crc32(repr(tuple(row)).encode()) for row in rows}
