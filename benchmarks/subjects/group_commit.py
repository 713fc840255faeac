"""Durable writes of many callers: one commit each, against a commit for many."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

from benchmarks.figures import Row, compare
from benchmarks.hubs import opened
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop
from hublet.core.batching import GroupCommit
from hublet.core.config import Settings
from hublet.core.database import Connection, Database
from hublet.core.ids import new_object_id

CALLERS = 100

Write = Callable[[], Awaitable[object]]


def measure(bench: Workbench) -> Iterator[Row]:
    """Durable writes per second of 100 callers, SQLite with every commit on the disk."""
    rates = run_loop(
        _rates(bench.site("SQLite").settings(), seconds=bench.seconds, rounds=bench.rounds)
    )
    yield compare(
        "durable writes, SQLite, grouped",
        ours=[together for together, _ in rates],
        other=[alone for _, alone in rates],
        other_is=f"one commit each ({CALLERS} callers at a time either way)",
        unit="/s",
    )


async def _rates(settings: Settings, *, seconds: float, rounds: int) -> list[tuple[float, float]]:
    async with opened(settings) as database:
        async with database.transaction() as conn:
            await conn.execute("CREATE TABLE measured (id TEXT PRIMARY KEY, text TEXT NOT NULL)")
        group = GroupCommit(database)
        return [
            (
                await _rate(lambda: group.run(_insert), seconds=seconds),
                await _rate(lambda: _insert_alone(database), seconds=seconds),
            )
            for _ in range(rounds)
        ]


async def _insert(conn: Connection) -> None:
    await conn.execute(
        "INSERT INTO measured (id, text) VALUES ($1, $2)", new_object_id(), "x" * 200
    )


async def _insert_alone(database: Database) -> None:
    async with database.transaction() as conn:
        await _insert(conn)


async def _rate(write: Write, *, seconds: float) -> float:
    start = time.perf_counter()
    counts = await asyncio.gather(*(_keep_writing(write, start + seconds) for _ in range(CALLERS)))
    return sum(counts) / (time.perf_counter() - start)


async def _keep_writing(write: Write, until: float) -> int:
    count = 0
    while time.perf_counter() < until:
        await write()
        count += 1
    return count
