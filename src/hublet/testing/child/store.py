"""Queries for tests: a database of their own, emptied between them, and the work that is left."""

import json
from collections.abc import Collection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from hublet.core.clock import micros
from hublet.core.database import Reader
from hublet.core.ids import new_object_id

if TYPE_CHECKING:
    import asyncpg


async def create_database(server: str) -> str:
    """Create an empty PostgreSQL database beside the named one, which stays as it is."""
    name = f"hublet_test_{new_object_id()}"
    await _execute_on(server, f"CREATE DATABASE {name}")
    return urlunsplit(urlsplit(server)._replace(path=f"/{name}"))


async def drop_database(server: str, url: str) -> None:
    await _execute_on(server, f"DROP DATABASE IF EXISTS {urlsplit(url).path[1:]} WITH (FORCE)")


async def _execute_on(server: str, statement: str) -> None:
    import asyncpg  # noqa: PLC0415 - only tests on PostgreSQL need it

    raw = await asyncpg.connect(server)
    try:
        await raw.execute(statement)
    finally:
        await raw.close()


class DatabaseCleaner:
    """Empties a PostgreSQL database again and again, all tables but the one of the schema version.

    It keeps its connection: a new one would first read the catalog, which takes longer than to
    empty the tables.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._raw: asyncpg.Connection | None = None
        self._names: list[str] = []
        self._may_skip_checks = False

    async def run(self) -> None:
        raw = await self._connected()
        checks = ", ".join(f"EXISTS (SELECT 1 FROM {name})" for name in self._names)
        # Few tables have rows.
        has_rows = await raw.fetchrow(f"SELECT {checks}")
        full = [name for name, any_row in zip(self._names, has_rows or (), strict=True) if any_row]
        if full and self._may_skip_checks:
            # TRUNCATE creates a new file for each table and index, and takes ten times as long.
            deletes = " ".join(f"DELETE FROM {name};" for name in full)
            await raw.execute(
                f"BEGIN; SET LOCAL session_replication_role = replica; {deletes} COMMIT"
            )
        elif full:
            await raw.execute(f"TRUNCATE {', '.join(full)} RESTART IDENTITY CASCADE")

    async def close(self) -> None:
        if self._raw is not None:
            await self._raw.close()

    async def _connected(self) -> "asyncpg.Connection":
        if self._raw is not None and not self._raw.is_closed():
            return self._raw
        import asyncpg  # noqa: PLC0415 - only tests on PostgreSQL need it

        raw = self._raw = await asyncpg.connect(self._url)
        tables = await raw.fetch(
            "SELECT relname AS tablename FROM pg_class "
            "WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') "
            "AND NOT relispartition ORDER BY relname"
        )
        self._names = [row["tablename"] for row in tables if row["tablename"] != "migrations"]
        self._may_skip_checks = await raw.fetchval(
            "SELECT rolsuper FROM pg_roles WHERE rolname = user"
        )
        return raw


async def is_busy(conn: Reader) -> bool:
    """Return whether any event, task or delivery is due or being handled.

    One statement, because it sees one moment: between two of them a task could end that the first
    has not seen yet, and add work that the second does not look for. The clock is read afterwards,
    so that what was due at once when it was written does not count as future work.
    """
    row = await conn.fetch_one(
        """
        SELECT
            EXISTS (SELECT 1 FROM outbox)
                OR EXISTS (SELECT 1 FROM tasks WHERE claimed_by IS NOT NULL)
                OR EXISTS (
                    SELECT 1 FROM webhook_deliveries WHERE state = 'fresh' OR claimed_by IS NOT NULL
                ) AS is_running,
            (SELECT min(due_at) FROM tasks WHERE claimed_by IS NULL AND parked_at IS NULL)
                AS task_at,
            (SELECT min(next_due_at) FROM webhook_lanes) AS lane_at
        """
    )
    assert row is not None  # noqa: S101 - for the type: there is always one
    now = micros()
    dues = (row["task_at"], row["lane_at"])
    return bool(row["is_running"]) or any(at is not None and at <= now for at in dues)


async def next_task_at(conn: Reader, *, except_for: Collection[str] = ()) -> int | None:
    """Return when the next task that nobody holds is due, except for these kinds, in microseconds."""
    due: int | None = await conn.fetch_value(
        """
        SELECT min(due_at) FROM tasks
        WHERE claimed_by IS NULL AND parked_at IS NULL AND kind NOT IN each($1)
        """,
        json.dumps(sorted(except_for)),
    )
    return due


async def list_kinds(conn: Reader) -> frozenset[str]:
    """Return the kinds of all tasks there are."""
    rows = await conn.fetch_all("SELECT DISTINCT kind FROM tasks")
    return frozenset(row["kind"] for row in rows)


async def list_webhooks(conn: Reader, id_or_url: str) -> list[tuple[str, str]]:
    """Return ids and owners of the webhooks with this id or URL; an empty text: of all."""
    rows = await conn.fetch_all(
        "SELECT id, owner_id FROM webhooks WHERE $1 = '' OR id = $1 OR url = $1 ORDER BY id",
        id_or_url,
    )
    return [(row["id"], row["owner_id"]) for row in rows]
