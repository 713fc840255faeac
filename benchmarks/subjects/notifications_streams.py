"""Live streams that are open at the same time: until all were told, and what they cost at rest."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median

from benchmarks.discussions import add_users, create_discussion
from benchmarks.figures import Row, Spoiled
from benchmarks.hubs import ENGINES, ServedHub, Site, opened, serving
from benchmarks.latencies import percentile_of
from benchmarks.processes import cpu_seconds
from benchmarks.rounds import request_bytes
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop
from hublet.core.database import Database
from hublet.notifications.inbox import service as inbox
from hublet.notifications.records import InboxItem, Involvement
from hublet.tokens import service as tokens
from hublet.tokens.records import TokenRole

STREAMS = 200
_PATH = "/api/notifications/stream"
_LONGEST_SECONDS = 60.0
# Longer than the pause between two looks whether the access is still there.
_REST_SECONDS = 6.0


@dataclass(slots=True)
class _Listener:
    """One open stream, and how many items it was told of."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    told: list[float] = field(default_factory=list)
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self) -> None:
        while line := await self.reader.readline():
            if line.startswith(b"event: count"):
                self.ready.set()
            elif line.startswith(b"event: notification"):
                self.told.append(time.perf_counter())


def measure(bench: Workbench) -> Iterator[Row]:
    """200 live streams: from a commit until all were told, and what they cost at rest."""
    streams = max(2, round(STREAMS * bench.share))
    for engine in ENGINES:
        site = bench.site(engine)
        users, values = run_loop(_furnish(site, streams))
        with serving(site, core=bench.cores.server) as hub:
            figures = run_loop(_figures(site, hub, users, values, rounds=bench.rounds * 2))
        waits, rest = figures
        yield Row(
            subject=f"{streams} live streams, until all were told, {engine}",
            unit="ms",
            ours=median(max(each) for each in waits) * 1000,
            note=f"p50 of a stream {percentile_of([w for e in waits for w in e], 0.5):.0f} ms; "
            "all looks are at least 250 ms apart",
        )
        yield Row(
            subject=f"{streams} live streams at rest, share of a core, {engine}",
            unit="%",
            ours=rest * 100,
        )


async def _furnish(site: Site, streams: int) -> tuple[list[str], list[str]]:
    async with opened(site.settings()) as database:
        users = await add_users(database, "listener", streams)
        async with database.transaction() as conn:
            values = [
                (await tokens.issue(conn, user_id=user, name="bench", role=TokenRole.read))[1]
                for user in users
            ]
    return users, values


async def _figures(
    site: Site, hub: ServedHub, users: Sequence[str], values: Sequence[str], *, rounds: int
) -> tuple[list[list[float]], float]:
    async with opened(site.settings()) as database, _listening(hub.port, values) as listeners:
        (owner_id,) = await add_users(database, "ada", 1)
        waits = [
            await _round(database, owner_id, users, listeners, number) for number in range(rounds)
        ]
        before = cpu_seconds(hub.child.id)
        await asyncio.sleep(_REST_SECONDS)
        rest = (cpu_seconds(hub.child.id) - before) / _REST_SECONDS
    return waits, rest


@asynccontextmanager
async def _listening(port: int, values: Sequence[str]) -> AsyncIterator[list[_Listener]]:
    listeners, tasks = [], []
    try:
        for value in values:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            listener = _Listener(reader, writer)
            listeners.append(listener)
            headers = {"authorization": f"Bearer {value}"}
            writer.write(request_bytes("GET", _PATH, headers=headers))
            tasks.append(asyncio.create_task(listener.listen()))
        async with asyncio.timeout(_LONGEST_SECONDS):
            await asyncio.gather(*(each.ready.wait() for each in listeners))
        yield listeners
    finally:
        for task in tasks:
            task.cancel()
        for listener in listeners:
            listener.writer.close()


async def _round(
    database: Database,
    owner_id: str,
    users: Sequence[str],
    listeners: Sequence[_Listener],
    number: int,
) -> list[float]:
    """Tell everybody of something in one commit; return how long each stream took to say it."""
    talk = await create_discussion(database, owner_id, number)
    item = InboxItem(
        thread_id=talk.thread_id, type="model", place_id=talk.repo_id, event_id=talk.thread_id
    )
    await asyncio.sleep(0.5)
    async with database.transaction() as conn:
        await inbox.deliver(conn, item, dict.fromkeys(users, Involvement.watched))
    start = time.perf_counter()
    deadline = start + _LONGEST_SECONDS
    while any(len(each.told) <= number for each in listeners):
        if time.perf_counter() > deadline:
            raise Spoiled(f"Not everybody was told within {_LONGEST_SECONDS:.0f} seconds.")
        await asyncio.sleep(0.002)
    return [each.told[number] - start for each in listeners]
