"""How many items a statement looks at, as each engine tells it."""

import json
import re
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from typing import Any

from hublet.core.database import Database, Row

# SQLite's own unit: steps of its machine. Fetching a row takes some dozen of them.
_STEPS = 10


class QueryCost:
    """What was done so far; the unit is the engine's, so only compare what one engine did."""

    def __init__(self) -> None:
        self.spent = 0

    def step(self) -> int:
        self.spent += 1
        return 0


class Measured:
    """A connection to PostgreSQL that has each statement explained before it runs."""

    def __init__(self, conn: Any, effort: QueryCost) -> None:
        self._conn = conn
        self._effort = effort
        self.hub = conn.hub

    def wake(self, channel: str) -> None:
        self._conn.wake(channel)

    def in_bulk(self) -> AbstractContextManager[None]:
        bulk: AbstractContextManager[None] = self._conn.in_bulk()
        return bulk

    async def fetch_all(self, sql: str, *values: Any) -> Sequence[Row]:
        await self._explain(sql, values)
        rows: Sequence[Row] = await self._conn.fetch_all(sql, *values)
        return rows

    async def fetch_value(self, sql: str, *values: Any) -> Any:
        return await self._conn.fetch_value(sql, *values)

    async def execute(self, sql: str, *values: Any) -> int:
        await self._explain(sql, values)
        count: int = await self._conn.execute(sql, *values)
        return count

    async def _explain(self, sql: str, values: tuple[Any, ...]) -> None:
        with suppress(Undone):
            async with self._conn.savepoint():
                plan = await self._conn.fetch_value(
                    f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", *values
                )
                self._effort.spent += sum(_looked_at(json.loads(plan)[0]["Plan"]))
                raise Undone


class Undone(Exception):
    pass


def _looked_at(node: dict[str, Any]) -> Iterator[int]:
    # The table itself, or one of its partitions.
    is_inbox = re.fullmatch(r"notifications(_\d+)?", node.get("Relation Name", ""))
    if is_inbox and node["Node Type"] != "ModifyTable":
        dropped = [node.get(f"Rows Removed by {why}", 0) for why in ("Filter", "Index Recheck")]
        yield round((node["Actual Rows"] + sum(dropped)) * node["Actual Loops"])
    for part in node.get("Plans", ()):
        yield from _looked_at(part)


@contextmanager
def _counted_steps(raw: sqlite3.Connection, effort: QueryCost) -> Iterator[None]:
    raw.set_progress_handler(effort.step, _STEPS)
    try:
        yield
    finally:
        raw.set_progress_handler(None, _STEPS)


@asynccontextmanager
async def measured(database: Database) -> AsyncIterator[tuple[Any, QueryCost]]:
    """Give a connection and the effort of what is done with it; in the end all is undone."""
    effort = QueryCost()
    with suppress(Undone):
        async with database.transaction() as conn:
            if database.kind == "postgresql":
                # Of tables this small the planner reads all or asks an index, as it happens; what
                # counts is that there is one to ask.
                await conn.execute("SET LOCAL enable_seqscan = off")
                yield Measured(conn, effort), effort
            else:
                with _counted_steps(database.writer, effort):  # type: ignore[attr-defined]
                    yield conn, effort
            raise Undone
