"""Upgrades: this version takes over the data of every schema that was released, on both engines."""

from collections.abc import AsyncIterator, Sequence
from itertools import count
from typing import Any

import httpx2
import pytest

from hublet.app import create_application, with_edge
from hublet.core.database import Connection, Database, open_database
from hublet.core.database.migrations import known_migrations, migrate
from hublet.core.database.table_copy import TableShape, open_snapshot
from hublet.first_start import prepare
from people import sign_in
from processes import Place
from scratch_database import hub_of

KNOWN = known_migrations()
# A row of each table refers to the row of another, so one name serves for both.
ID = "6af65dac549a4525d924eb54"
# Its rows say that git's objects are in a shared store, which is not there.
LEFT_EMPTY = {"migrations", "repo_packs"}
# Tables that the hub fills, or empties, by itself when it starts.
BUSY = {"migrations", "outbox", "tasks", "facts", "metric_samples"}


@pytest.fixture
async def empty(place: Place) -> AsyncIterator[Database]:
    place.data_dir.mkdir()
    async with open_database(hub_of(place.settings)) as database:
        yield database


async def columns_of(conn: Connection, table: str, kind: str) -> list[tuple[str, str]]:
    """Return names and types."""
    if kind == "sqlite":
        rows = await conn.fetch_all(f"PRAGMA table_info({table})")
        return [(row["name"], row["type"].upper()) for row in rows]
    rows = await conn.fetch_all(
        "SELECT column_name::text, upper(data_type)::text FROM information_schema.columns "
        "WHERE table_name = $1 AND table_schema = current_schema()",
        table,
    )
    return [(row[0], row[1]) for row in rows]


def value_of(column: str, kind: str) -> Any:
    match kind:
        case "TEXT":
            return "[]" if column.endswith("s") else ID
        case "BOOLEAN":
            return False
        case "BYTEA":
            return b"sealed"
        case _:
            return 1


async def fill(conn: Connection, tables: Sequence[TableShape], kind: str) -> set[str]:
    """Put a row into every table that takes one of made-up values; return which these are."""
    filled: set[str] = set()
    # A table that refers to another can be filled only after it.
    for _ in range(len(tables)):
        before = len(filled)
        for table in tables:
            if table.name not in filled | LEFT_EMPTY:
                try:
                    async with conn.savepoint():
                        await insert(conn, table.name, kind)
                    filled.add(table.name)
                except Exception:  # noqa: BLE001 - it may work in the next round
                    continue
        if len(filled) == before:
            break
    return filled


async def insert(conn: Connection, table: str, kind: str) -> None:
    columns = await columns_of(conn, table, kind)
    numbers = count(1)
    places = ", ".join(f"${next(numbers)}" for _ in columns)
    names = ", ".join(f'"{name}"' for name, _ in columns)
    await conn.execute(
        f"INSERT INTO {table} ({names}) VALUES ({places})",
        *(value_of(name, kind_of) for name, kind_of in columns),
    )


async def rows_of(conn: Connection, table: str) -> int:
    found: int = await conn.fetch_value(f"SELECT count(*) FROM {table}")
    return found


@pytest.mark.full
@pytest.mark.parametrize("number", [each.number for each in KNOWN])
async def test_a_hub_of_an_earlier_schema_works_after_the_upgrade(
    empty: Database, number: int
) -> None:
    await migrate(empty, [each for each in KNOWN if each.number <= number])
    async with open_snapshot(empty) as snapshot:
        tables = snapshot.tables
    async with empty.transaction() as conn:
        filled = await fill(conn, tables, empty.kind)
    # Enough of them take such values that a migration which breaks on rows is found.
    assert len(filled) >= len(tables) * 2 // 3

    await prepare(empty)

    async with open_snapshot(empty) as snapshot:
        left = {table.name for table in snapshot.tables}
    async with empty.transaction() as conn:
        kept = {table for table in (filled & left) - BUSY if await rows_of(conn, table)}
    assert kept == (filled & left) - BUSY
    await use(empty)


async def use(database: Database) -> None:
    app = create_application(database)
    app.state.callers.start()
    headers = await sign_in(database, "zoe")
    transport = httpx2.ASGITransport(app=with_edge(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        asked = await client.get("/api/whoami-v2", headers=headers)
        made = await client.post("/api/repos/create", headers=headers, json={"name": "engine"})
        listed = await client.get("/api/models?author=zoe", headers=headers)
        inbox = await client.get("/api/notifications", headers=headers)
    await app.state.callers.stop()
    statuses = [each.status_code for each in (asked, made, listed, inbox)]
    assert statuses == [200, 200, 200, 200], (asked.text, made.text, listed.text, inbox.text)
    assert [each["id"] for each in listed.json()] == ["zoe/engine"]
