"""Commits that wake other processes: notices gathered after them, against NOTIFY in each of them."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from typing import IO, Any, cast

from benchmarks.figures import Goal, Row, compare
from benchmarks.hubs import opened
from benchmarks.latencies import percentile_of
from benchmarks.processes import ROOT, clean_environment
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop
from hublet.core.config import Settings
from hublet.core.database import Connection
from hublet.core.database.postgresql import PostgresConnection, PostgresDatabase
from hublet.core.database.postgresql_notices import notify_statement
from hublet.core.ids import new_object_id

WRITERS = 32
_CHANNEL, _PROBE = "measured", "probe"
_PROBES = 300
_PAUSE_SECONDS = 0.02
_PATIENCE_SECONDS = 30.0
_GOAL = Goal(floor=25, aim=12, more_is_better=False, of="ours")

Begin = Callable[[], AbstractAsyncContextManager[Connection]]


def measure(bench: Workbench) -> Iterator[Row]:
    """Commits per second that wake other processes, PostgreSQL, and how soon those hear of it."""
    settings = bench.site("PostgreSQL").settings()
    settings = replace(settings, database=replace(settings.database, pool_size=WRITERS + 1))
    probes = max(10, round(_PROBES * bench.share))
    rates, waits = run_loop(_measured(settings, bench, probes))
    yield compare(
        f"commits of {WRITERS} writers that wake others, PostgreSQL",
        ours=[gathered for gathered, _ in rates],
        other=[inside for _, inside in rates],
        other_is="NOTIFY in each commit",
        unit="/s",
    )
    for name, found in waits.items():
        yield Row(
            subject=f"commit to a listener in another process, {name}, p99",
            unit="ms",
            ours=percentile_of(found, 0.99),
            goal=_GOAL,
            note=f"p50 {percentile_of(found, 0.5):.1f} ms of {len(found)} commits",
        )


async def _measured(
    settings: Settings, bench: Workbench, probes: int
) -> tuple[list[tuple[float, float]], dict[str, list[float]]]:
    async with opened(settings) as database:
        assert isinstance(database, PostgresDatabase)
        async with database.transaction() as conn:
            await conn.execute("CREATE TABLE measured (id TEXT PRIMARY KEY, text TEXT NOT NULL)")
        with _listener(settings) as lines:
            rates = [
                (
                    await _rate(database.transaction, bench.seconds),
                    await _rate(partial(_notifying, database), bench.seconds),
                )
                for _ in range(bench.rounds)
            ]
            waits = {"when idle": await _waits(database, lines, probes)}
            async with _busy(database.transaction):
                waits[f"beside {WRITERS - 1} writers"] = await _waits(database, lines, probes)
        return rates, waits


class _NotifyingConnection(PostgresConnection):
    """Notifies in the commit itself, as all commits did once."""

    async def _commit(self, raw: Any) -> None:
        await raw.execute(f"{notify_statement([_CHANNEL])}; COMMIT")


@asynccontextmanager
async def _notifying(database: PostgresDatabase) -> AsyncIterator[Connection]:
    conn = _NotifyingConnection(database)
    yield conn
    await conn.commit()


async def _insert(begin: Begin, channel: str = _CHANNEL) -> None:
    async with begin() as conn:
        await conn.execute(
            "INSERT INTO measured (id, text) VALUES ($1, $2)", new_object_id(), "x" * 200
        )
        conn.wake(channel)


async def _rate(begin: Begin, seconds: float) -> float:
    start = time.perf_counter()

    async def keep_writing() -> int:
        count = 0
        while time.perf_counter() < start + seconds:
            await _insert(begin)
            count += 1
        return count

    counts = await asyncio.gather(*(keep_writing() for _ in range(WRITERS)))
    return sum(counts) / (time.perf_counter() - start)


@asynccontextmanager
async def _busy(begin: Begin) -> AsyncIterator[None]:
    async def keep_writing() -> None:
        while True:
            await _insert(begin)

    writers = [asyncio.create_task(keep_writing()) for _ in range(WRITERS - 1)]
    try:
        yield
    finally:
        for each in writers:
            each.cancel()
        await asyncio.gather(*writers, return_exceptions=True)


async def _waits(database: PostgresDatabase, lines: IO[str], probes: int) -> list[float]:
    """Return the seconds from each commit until the other process was woken by it."""
    waits: list[float] = []
    for _ in range(probes):
        await asyncio.sleep(_PAUSE_SECONDS)
        await _insert(database.transaction, _PROBE)
        committed = time.monotonic_ns()
        async with asyncio.timeout(_PATIENCE_SECONDS):
            heard = int(await asyncio.to_thread(lines.readline))
        # It may have heard before the one who committed is told: then no time has passed.
        waits.append(max(0, heard - committed) / 1e9)
    return waits


@contextmanager
def _listener(settings: Settings) -> Iterator[IO[str]]:
    """Another process on the same database, which says when it was woken."""
    command = [sys.executable, "-m", "benchmarks.notice_listener", _PROBE, settings.database_url]
    process = subprocess.Popen(
        command, cwd=ROOT, env=clean_environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        with cast("IO[str]", process.stdout) as lines:
            # Everybody is woken when the connection is there.
            lines.readline()
            yield lines
    finally:
        process.terminate()
        process.wait()
