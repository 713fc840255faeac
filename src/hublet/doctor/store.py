"""Queries of the doctor."""

from hublet.core.database import Reader


async def sqlite_version(conn: Reader) -> str:
    return str(await conn.fetch_value("SELECT sqlite_version()"))


async def journal_mode(conn: Reader) -> str:
    return str(await conn.fetch_value("PRAGMA journal_mode"))


async def list_damages(conn: Reader) -> list[str]:
    """Return the damages that SQLite finds in its file."""
    rows = await conn.fetch_all("PRAGMA quick_check(10)")
    return [row[0] for row in rows if row[0] != "ok"]


async def postgresql_version(conn: Reader) -> str:
    return str(await conn.fetch_value("SHOW server_version"))


async def notify(conn: Reader, channel: str) -> None:
    """Send a notice within the transaction, as a commit of a hub does after it."""
    await conn.fetch_value("SELECT pg_notify('hublet', $1)::text", channel)


async def encoding(conn: Reader) -> str:
    return str(await conn.fetch_value("SHOW server_encoding"))


# Tables that grow, each with the column of the time at which a row was written.
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
    micros: int | None = await conn.fetch_value(f"SELECT max(written_at) FROM ({newest}) AS newest")
    return micros


async def oldest_event(conn: Reader) -> int | None:
    """Return when the event that waits longest was published, in microseconds."""
    micros: int | None = await conn.fetch_value("SELECT min(published_at) FROM outbox")
    return micros


async def oldest_fresh_delivery(conn: Reader) -> int | None:
    """Return when the oldest delivery that no worker has claimed was created."""
    micros: int | None = await conn.fetch_value(
        "SELECT min(created_at) FROM webhook_deliveries WHERE state = 'fresh'"
    )
    return micros


async def count_webhooks(conn: Reader) -> tuple[int, int, int]:
    """Return the numbers of all webhooks, of failing ones, and of suspended ones."""
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
