"""One comment in a repository that thousands watch, until it is in the inbox of each of them."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median

from benchmarks.discussions import add_users, create_discussion, watch
from benchmarks.figures import Row, Spoiled
from benchmarks.hubs import ENGINES, opened
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.outbox import publish
from hublet.notifications.records import INBOXES_CHANNEL
from hublet.worker import Worker

WATCHERS = 10_000
_LONGEST_SECONDS = 300.0
_BEAT_SECONDS = 0.001


@dataclass(slots=True)
class _Pulse:
    """The longest time in which nothing else could run in this process."""

    longest: float = 0.0

    async def beat(self) -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(_BEAT_SECONDS)
            self.longest = max(self.longest, time.perf_counter() - start - _BEAT_SECONDS)


def measure(bench: Workbench) -> Iterator[Row]:
    """One event for 10,000 watchers: until all have it, and how long the process was blocked."""
    watchers = round(WATCHERS * bench.share)
    for engine in ENGINES:
        taken = run_loop(_figures(bench.site(engine).settings(), watchers, rounds=bench.rounds))
        seconds, pauses = zip(*taken, strict=True)
        yield Row(
            subject=f"one event to {watchers:,} watchers, {engine}",
            unit="s",
            ours=median(seconds),
            note=f"inbox and the plan of a mail each; {watchers / median(seconds):,.0f} users a "
            f"second; {min(seconds):.1f} to {max(seconds):.1f} s over {len(seconds)} rounds",
        )
        yield Row(
            subject=f"one event to {watchers:,} watchers, {engine}, longest pause of the process",
            unit="ms",
            ours=median(pauses) * 1000,
            note=f"{max(pauses) * 1000:.0f} ms at the most over all rounds",
        )


async def _figures(settings: Settings, watchers: int, *, rounds: int) -> list[tuple[float, float]]:
    async with opened(settings) as database, _working(database):
        (owner_id,) = await add_users(database, "ada", 1)
        users = await add_users(database, "watcher", watchers)
        return [await _round(database, owner_id, users, number) for number in range(rounds)]


@asynccontextmanager
async def _working(database: Database) -> AsyncIterator[None]:
    worker = Worker(database)
    worker.start()
    try:
        yield
    finally:
        await worker.stop()


async def _round(
    database: Database, owner_id: str, users: list[str], number: int
) -> tuple[float, float]:
    talk = await create_discussion(database, owner_id, number)
    await watch(database, users, repo_id=talk.repo_id)
    pulse = _Pulse()
    beating = asyncio.create_task(pulse.beat())
    with database.subscribe(INBOXES_CHANNEL) as bell:
        async with database.transaction() as conn:
            await publish(conn, talk.event)
        start = time.perf_counter()
        while await _count(database, talk.thread_id) < len(users):
            if time.perf_counter() - start > _LONGEST_SECONDS:
                raise Spoiled(f"Not everybody was told within {_LONGEST_SECONDS:.0f} seconds.")
            await bell.wait(timeout=0.1)
    beating.cancel()
    return time.perf_counter() - start, pulse.longest


async def _count(database: Database, thread_id: str) -> int:
    async with database.read() as conn:
        count: int = await conn.fetch_value(
            "SELECT count(*) FROM notifications WHERE thread_id = $1", thread_id
        )
    return count
