"""Webhooks for tests of what they are triggered by, put straight into the tables."""

from typing import Any

from hublet.core.clock import micros
from hublet.core.database import Connection, Database
from hublet.core.ids import new_object_id


async def a_watcher(
    database: Database,
    owner_id: str,
    *targets: str,
    domains: tuple[str, ...] = ("repo", "discussion"),
    state: str = "enabled",
) -> str:
    """Return the id of a webhook that watches what has these ids."""
    async with database.transaction() as conn:
        return await add_watcher(conn, owner_id, *targets, domains=domains, state=state)


async def add_watcher(
    conn: Connection,
    owner_id: str,
    *targets: str,
    domains: tuple[str, ...] = ("repo", "discussion"),
    state: str = "enabled",
) -> str:
    webhook_id, now = new_object_id(), micros()
    creator = await conn.fetch_value("SELECT min(id) FROM users")
    await conn.execute(
        """
        INSERT INTO webhooks (id, owner_id, creator_id, url, secret_names, watches_repo,
            watches_discussion, state, created_at, updated_at)
        VALUES ($1, $2, $3, 'http://127.0.0.1:9/hook', '[]', $4, $5, $6, $7, $7)
        """,
        webhook_id, owner_id, creator, "repo" in domains, "discussion" in domains, state, now,
    )  # fmt: skip
    await conn.execute_many(
        "INSERT INTO webhook_watched (webhook_id, position, type, name, target) "
        "VALUES ($1, $2, 'model', 'ada/engine', $3)",
        [(webhook_id, position, target) for position, target in enumerate(targets)],
    )
    return webhook_id


async def list_triggered(database: Database, webhook_id: str) -> list[dict[str, Any]]:
    """Return what the webhook is to deliver, oldest first."""
    async with database.read() as conn:
        rows = await conn.fetch_all(
            """
            SELECT e.scope, e.action, d.state, d.reason FROM webhook_deliveries d
            JOIN webhook_events e ON e.id = d.event_id WHERE d.webhook_id = $1 ORDER BY d.id
            """,
            webhook_id,
        )
    columns = ("scope", "action", "state", "reason")
    return [dict(zip(columns, row, strict=True)) for row in rows]


async def payloads(database: Database) -> list[bytes]:
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT payload FROM webhook_events ORDER BY id")
    return [row["payload"].encode() for row in rows]
