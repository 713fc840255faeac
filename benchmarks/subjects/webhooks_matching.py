"""What webhooks cost whoever pushes, inside the transaction of the push."""

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from benchmarks.figures import Goal, Row, Spoiled, compare
from benchmarks.hubs import ENGINES, Engine, Site, opened
from benchmarks.machine import tied_to
from benchmarks.webhook_scene import Scene, a_push, a_repo, create_scene, settings_of
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop
from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.events import RepoContentUpdated
from hublet.webhooks.triggers import service as triggers

CROWD = 100_000
MATCHING = 10
_PUSHES_PER_COMMIT = 25
_COMMITS = 20
_AT_ONCE = 10_000
_FLAT = Goal(floor=1.5, aim=1.1, more_is_better=False, of="ratio")
_TEN = Goal(floor=1.0, aim=0.3, more_is_better=False, of="ours")


def measure(bench: Workbench) -> Iterator[Row]:
    """What a push waits for webhooks: none of 100,000 matches, and ten do."""
    crowd = round(CROWD * bench.share)
    for engine in ENGINES:
        sites = bench.site(engine), bench.site(engine)
        with tied_to(bench.cores.server):
            yield from run_loop(_rows(engine, sites, crowd=crowd))


async def _rows(engine: Engine, sites: tuple[Site, Site], *, crowd: int) -> Sequence[Row]:
    async with _hub(sites[0], crowd=0) as empty, _hub(sites[1], crowd=crowd) as full:
        elsewhere = a_push(a_repo(owner_id=new_object_id()))
        alone, beside, matching = [], [], []
        for _ in range(_COMMITS):
            alone.append(await _micros_of(empty.database, elsewhere))
            beside.append(await _micros_of(full.database, elsewhere))
            matching.append(await _micros_of(full.database, full.event))
        await _check(full, pushes=_COMMITS * _PUSHES_PER_COMMIT)
    flat = compare(
        f"push past {crowd:,} webhooks, none matches, {engine}",
        ours=beside,
        other=alone,
        other_is=f"a hub with {MATCHING} webhooks",
        unit="µs",
        goal=_FLAT,
    )
    ten = compare(
        f"push past {crowd:,} webhooks, {MATCHING} match, {engine}",
        ours=[each / 1000 for each in matching],
        other=[each / 1000 for each in alone],
        other_is="none matches",
        unit="ms",
        goal=_TEN,
    )
    return flat, replace(ten, note="added to the transaction; its commit is not in it")


@asynccontextmanager
async def _hub(site: Site, *, crowd: int) -> AsyncIterator[Scene]:
    """Open a hub with ten webhooks at one repository, and a crowd of others elsewhere."""
    async with opened(settings_of(site)) as database:
        urls = [f"https://receiver-{number}.test/hook" for number in range(MATCHING)]
        scene = await create_scene(database, urls)
        for done in range(0, crowd, _AT_ONCE):
            await _crowd(database, scene.event.actor_id, min(_AT_ONCE, crowd - done))
        if site.database_url is not None:
            # So many at once the server would count within a minute by itself.
            async with database.transaction() as conn:
                await conn.execute("ANALYZE webhooks, webhook_watched")
        yield scene


async def _crowd(database: Database, owner_id: str, count: int) -> None:
    """Add webhooks as the management does, but many at a time; each watches another repository."""
    ids, now = [new_object_id() for _ in range(count)], micros()
    async with database.transaction() as conn:
        await conn.execute_many(
            """
            INSERT INTO webhooks
                (id, owner_id, creator_id, url, secret_names, watches_repo, watches_discussion,
                 state, created_at, updated_at)
            VALUES ($1, $2, $2, $3, '[]', TRUE, TRUE, 'enabled', $4, $4)
            """,
            [(each, owner_id, f"https://receiver.test/{each}", now) for each in ids],
        )
        await conn.execute_many(
            """
            INSERT INTO webhook_watched (webhook_id, position, type, name, target)
            VALUES ($1, 0, 'model', 'ada/other', $2)
            """,
            [(each, new_object_id()) for each in ids],
        )


async def _micros_of(database: Database, event: RepoContentUpdated) -> float:
    """Return what one push waits, as the mean over one transaction of many."""
    async with database.transaction() as conn:
        # The first statement begins the transaction, which is not ours to pay.
        await conn.fetch_value("SELECT 1")
        start = time.perf_counter()
        for _ in range(_PUSHES_PER_COMMIT):
            await triggers.record_event(conn, event)
        return (time.perf_counter() - start) / _PUSHES_PER_COMMIT * 1e6


async def _check(full: Scene, *, pushes: int) -> None:
    async with full.database.read() as conn:
        found = await conn.fetch_value("SELECT count(*) FROM webhook_deliveries")
    if found != pushes * MATCHING:
        raise Spoiled(f"{pushes} pushes caused {found} deliveries to {MATCHING} webhooks each.")
