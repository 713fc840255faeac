"""SQL of deliveries that are sent again."""

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.repos.records import Repo
from hublet.repos.store import COLUMNS, OWNER, record
from hublet.webhooks.activity.records import DeliveryStatus, Recovery
from hublet.webhooks.records import DELIVERIES_CHANNEL

_DAY = 86_400_000_000

# Restarts a delivery; `$1` is its webhook, `$2` when it is due.
_RESTART = """
    UPDATE webhook_deliveries
    SET state = 'pending', reason = NULL, tries = 0, due_at = $2, finished_at = NULL
    WHERE webhook_id = $1 AND claimed_by IS NULL
"""
# An event of a time in which the owner could not see the repository is never sent.
_ALLOWED = "(reason IS NULL OR reason <> 'no-access')"
_RECOVERABLE = f"state IN ('failed', 'unsent') AND NOT ping AND {_ALLOWED}"


async def find_status(conn: Reader, webhook_id: str, delivery_id: str) -> DeliveryStatus | None:
    row = await conn.fetch_one(
        """
        SELECT state, reason, attempts, claimed_by IS NOT NULL AS is_claimed
        FROM webhook_deliveries WHERE id = $1 AND webhook_id = $2
        """,
        delivery_id, webhook_id,
    )  # fmt: skip
    if row is None:
        return None
    return DeliveryStatus(
        state=row["state"],
        reason=row["reason"],
        attempts=row["attempts"],
        is_claimed=bool(row["is_claimed"]),
    )


async def restart(conn: Connection, webhook_id: str, delivery_id: str) -> bool:
    """Restart a delivery that has ended; False when it has not ended."""
    now = micros()
    changed = await conn.execute(
        f"{_RESTART} AND id = $3 AND state IN ('delivered', 'failed', 'unsent') AND {_ALLOWED}",
        webhook_id, await _before_all_others(conn, webhook_id, now), delivery_id,
    )  # fmt: skip
    if changed:
        await _make_due(conn, webhook_id, now)
    return changed == 1


async def _before_all_others(conn: Reader, webhook_id: str, now: int) -> int:
    """Return a due time before all other deliveries of the webhook: a request waits for this one.

    A degraded target is probed with one delivery only, and this one may be why it was repaired.
    """
    earliest: int | None = await conn.fetch_value(
        """
        SELECT min(due_at) FROM webhook_deliveries
        WHERE webhook_id = $1 AND state = 'pending' AND claimed_by IS NULL
        """,
        webhook_id,
    )
    if earliest is None or earliest > now:
        return now
    # What has been due for days is given up.
    return max(earliest - 1, now - _DAY)


async def count_recoverable(conn: Reader, recovery: Recovery) -> int:
    count: int = await conn.fetch_value(
        f"""
        SELECT count(*) FROM webhook_deliveries
        WHERE webhook_id = $1 AND created_at >= $2 AND created_at < $3 AND {_RECOVERABLE}
        """,
        recovery.webhook_id, recovery.since, recovery.until,
    )  # fmt: skip
    return count


async def recover(conn: Connection, recovery: Recovery, *, limit: int) -> list[str]:
    """Restart the oldest of these deliveries; return which."""
    now = micros()
    rows = await conn.fetch_all(
        f"""
        {_RESTART} AND {_RECOVERABLE} AND id IN (
            SELECT id FROM webhook_deliveries
            WHERE webhook_id = $1 AND id > $3 AND created_at >= $4 AND created_at < $5
              AND {_RECOVERABLE}
            ORDER BY id LIMIT $6
        )
        RETURNING id
        """,
        recovery.webhook_id, now, recovery.after, recovery.since, recovery.until, limit,
    )  # fmt: skip
    if rows:
        await _make_due(conn, recovery.webhook_id, now)
    return sorted(row["id"] for row in rows)


async def _make_due(conn: Connection, webhook_id: str, now: int) -> None:
    """Make the webhook's lane due now, unless it is already."""
    await conn.execute(
        """
        INSERT INTO webhook_lanes (webhook_id, next_due_at) VALUES ($1, $2)
        ON CONFLICT (webhook_id) DO UPDATE SET next_due_at = CASE
            WHEN webhook_lanes.next_due_at < excluded.next_due_at THEN webhook_lanes.next_due_at
            ELSE excluded.next_due_at END
        """,
        webhook_id, now,
    )  # fmt: skip
    conn.wake(DELIVERIES_CHANNEL)


async def list_newest_repos(
    conn: Reader, owner_id: str, repo_type: str, *, limit: int
) -> list[Repo]:
    rows = await conn.fetch_all(
        f"""
        SELECT {COLUMNS} FROM repos r {OWNER}
        WHERE r.owner_id = $1 AND r.type = $2 ORDER BY r.created_at DESC, r.id DESC LIMIT $3
        """,
        owner_id, repo_type, limit,
    )  # fmt: skip
    return [record(row) for row in rows]
