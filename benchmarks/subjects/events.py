"""From a published event to the reaction it causes, with the worker in the same process."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median

from benchmarks.figures import Goal, Row, Spoiled
from benchmarks.hubs import ENGINES, Engine, opened
from benchmarks.latencies import percentile_of
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop
from hublet.core import outbox
from hublet.core.config import Settings
from hublet.core.database import Connection, Database
from hublet.core.outbox import Event, publish, reacts_to
from hublet.worker import Worker

EVENTS = 5_000
_EVENTS_PER_COMMIT = 50
_IDLE_EVENTS = 200
_IDLE_PAUSE_SECONDS = 0.01
_SETTLE_SECONDS = 0.5
_LONGEST_SECONDS = 120.0
_DONE_CHANNEL = "benchmark"

# A webhook delivery begins with an event, so events must not be slower than deliveries.
_RATES: dict[Engine, Goal] = {
    "SQLite": Goal(floor=3_000, aim=10_000, more_is_better=True, of="ours"),
    "PostgreSQL": Goal(floor=2_000, aim=6_000, more_is_better=True, of="ours"),
}
_LATENCY = Goal(floor=25, aim=10, more_is_better=False, of="ours")


@dataclass(slots=True, kw_only=True)
class _Reactions:
    """When each reaction ran, in the order they did."""

    moments: list[float] = field(default_factory=list)


_reactions = _Reactions()


def _an_event() -> Event:
    """Return an event with one reaction; importing this module must not add to the hub's own."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Measured(Event):
        kind = "benchmark.measured"
        number: int

    @reacts_to(Measured)
    async def note(conn: Connection, _event: Measured) -> None:
        _reactions.moments.append(time.perf_counter())
        conn.wake(_DONE_CHANNEL)

    return Measured(number=1)


def measure(bench: Workbench) -> Iterator[Row]:
    """Events per second from publish to committed reaction, and the latency when idle."""
    event = _an_event()
    for engine in ENGINES:
        settings = bench.site(engine).settings()
        rates, waits = run_loop(_figures(settings, event, rounds=bench.rounds))
        yield Row(
            subject=f"events, {engine}",
            unit="/s",
            ours=median(rates),
            goal=_RATES[engine],
            note=f"{EVENTS:,} events, {_EVENTS_PER_COMMIT} to a commit, one reaction each; "
            f"{min(rates):,.0f} to {max(rates):,.0f} over {len(rates)} rounds",
        )
        yield Row(
            subject=f"commit to reaction when idle, {engine}, p99",
            unit="ms",
            ours=percentile_of(waits, 0.99),
            goal=_LATENCY,
            note=f"p50 {percentile_of(waits, 0.5):.1f} ms of {len(waits)} events",
        )


async def _figures(
    settings: Settings, event: Event, *, rounds: int
) -> tuple[list[float], list[float]]:
    async with opened(settings) as database, _working(database):
        await _all_done(database)
        rates = [await _rate(database, event) for _ in range(rounds)]
        # Until a worker does not take itself for busy any more.
        await asyncio.sleep(_SETTLE_SECONDS)
        waits = [await _wait_when_idle(database, event) for _ in range(_IDLE_EVENTS)]
    return rates, waits


@asynccontextmanager
async def _working(database: Database) -> AsyncIterator[None]:
    worker = Worker(database)
    worker.start()
    try:
        yield
    finally:
        await worker.stop()


async def _rate(database: Database, event: Event) -> float:
    _reactions.moments.clear()
    start = time.perf_counter()
    for _ in range(EVENTS // _EVENTS_PER_COMMIT):
        async with database.transaction() as conn:
            for _ in range(_EVENTS_PER_COMMIT):
                await publish(conn, event)
    await _all_done(database)
    seconds = time.perf_counter() - start
    if len(_reactions.moments) != EVENTS:
        raise Spoiled(f"{EVENTS} events caused {len(_reactions.moments)} reactions.")
    return EVENTS / seconds


async def _all_done(database: Database) -> None:
    with database.subscribe(_DONE_CHANNEL) as bell:
        async with asyncio.timeout(_LONGEST_SECONDS):
            while await _count_open(database):
                await bell.wait(timeout=0.05)


async def _count_open(database: Database) -> int:
    async with database.read() as conn:
        # In this order: what leaves the outbox in between is a task by then.
        events = await outbox.count_waiting(conn)
        # A hub always has other tasks too, such as what it sweeps once a day.
        reactions: int = await conn.fetch_value(
            "SELECT count(*) FROM tasks WHERE kind LIKE 'reaction:%'"
        )
    return events + reactions


async def _wait_when_idle(database: Database, event: Event) -> float:
    await asyncio.sleep(_IDLE_PAUSE_SECONDS)
    _reactions.moments.clear()
    async with database.transaction() as conn:
        await publish(conn, event)
    committed = time.perf_counter()
    await _all_done(database)
    return _reactions.moments[0] - committed
