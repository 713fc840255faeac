"""SQL that only the doctor needs."""

from hublet.core.database import Reader


async def sqlite_version(conn: Reader) -> str:
    return str(await conn.fetch_value("SELECT sqlite_version()"))


async def journal_mode(conn: Reader) -> str:
    return str(await conn.fetch_value("PRAGMA journal_mode"))


async def list_damages(conn: Reader) -> list[str]:
    """Return what SQLite finds broken in its file."""
    rows = await conn.fetch_all("PRAGMA quick_check(10)")
    return [row[0] for row in rows if row[0] != "ok"]


async def postgresql_version(conn: Reader) -> str:
    return str(await conn.fetch_value("SHOW server_version"))


async def encoding(conn: Reader) -> str:
    return str(await conn.fetch_value("SHOW server_encoding"))


# The tables that grow, each with the column that tells when a row was written.
_GROWING = {
    "users": "created_at",
    "tokens": "created_at",
    "audit_log": "at",
    "outbox": "published_at",
}


async def newest_row(conn: Reader) -> int | None:
    """Return when the newest row was written, in microseconds; ids grow with time."""
    newest = " UNION ALL ".join(
        f"SELECT * FROM (SELECT {column} AS written_at FROM {table} ORDER BY id DESC LIMIT 1) AS t"
        for table, column in _GROWING.items()
    )
    found: int | None = await conn.fetch_value(f"SELECT max(written_at) FROM ({newest}) AS newest")
    return found


async def oldest_event(conn: Reader) -> int | None:
    """Return when the event that waits longest was published, in microseconds."""
    found: int | None = await conn.fetch_value("SELECT min(published_at) FROM outbox")
    return found


async def oldest_fresh_delivery(conn: Reader) -> int | None:
    """Return when the webhook delivery that nobody has looked at yet was caused."""
    found: int | None = await conn.fetch_value(
        "SELECT min(created_at) FROM webhook_deliveries WHERE state = 'fresh'"
    )
    return found


async def count_webhooks(conn: Reader) -> tuple[int, int, int]:
    """Return how many there are, how many fail at this time, and how many are suspended."""
    row = await conn.fetch_one(
        """
        SELECT count(*), count(l.degraded_since), coalesce(sum(
            CASE WHEN w.state = 'suspended-after-failure' THEN 1 ELSE 0 END), 0)
        FROM webhooks w LEFT JOIN webhook_lanes l
            ON l.webhook_id = w.id AND w.state = 'enabled'
        """
    )
    total, failing, suspended = row or (0, 0, 0)
    return total, failing, suspended
