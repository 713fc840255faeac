"""Query plans of the statements that a measured call runs."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.hubs import Engine
from hublet.core.database import Connection, Database

_EXPLAIN: dict[Engine, str] = {"SQLite": "EXPLAIN QUERY PLAN", "PostgreSQL": "EXPLAIN (COSTS OFF)"}


# SQL and its values.
Statement = tuple[str, Sequence[Any]]


class _RecordingReader:
    """Stands in for a connection, runs everything on it, and notes each statement before."""

    def __init__(self, conn: Any, noted: list[Statement]) -> None:
        self._conn = conn
        self._noted = noted

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._conn, name)
        if name not in {"fetch_all", "fetch_one", "execute"}:
            return found

        async def note(sql: str, *values: Any) -> Any:
            self._noted.append((sql, values))
            return await found(sql, *values)

        return note


class RecordingDatabase:
    """Stands in for a database whose statements are noted."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.hub = database.hub
        self.noted: list[Statement] = []

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Any]:
        async with self._database.read() as conn:
            yield _RecordingReader(conn, self.noted)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        async with self._database.transaction() as conn:
            yield _RecordingReader(conn, self.noted)


async def show_plans(
    database: Database, engine: Engine, title: str, call: Callable[[Any], Awaitable[object]]
) -> None:
    """Run a call once and print how the engine goes about each of its statements."""
    noted = RecordingDatabase(database)
    await call(noted)
    print(f"\n{title}, {engine}")
    for sql, values in noted.noted:
        print("  " + " ".join(sql.split())[:160])
        for line in await _plan(database, engine, sql, values):
            print(f"      {line}")


async def _plan(
    database: Database, engine: Engine, sql: str, values: Sequence[Any]
) -> Sequence[str]:
    async with database.transaction() as conn:
        rows = await _explained(conn, engine, sql, values)
    return [str(row["detail"] if engine == "SQLite" else row[0]) for row in rows]


async def _explained(
    conn: Connection, engine: Engine, sql: str, values: Sequence[Any]
) -> Sequence[Any]:
    return await conn.fetch_all(f"{_EXPLAIN[engine]} {sql}", *values)
