"""Sustained deliveries: rows that were committed before, drained by a real worker."""

import os
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from statistics import median

from benchmarks.figures import Goal, Row, Spoiled
from benchmarks.hubs import ENGINES, Engine, Site, opened
from benchmarks.peers.deliveries import PEERS, Drain, drain
from benchmarks.peers.environments import PeerUnavailable
from benchmarks.processes import Child, cpu_seconds, hold
from benchmarks.sink import Sink, sinking
from benchmarks.webhook_scene import (
    WEBHOOKS,
    Scene,
    create_scene,
    delivering,
    settings_of,
    until,
    warm_up,
)
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

DELIVERIES = 10_000
_EVENTS_PER_COMMIT = 20
_LONGEST_SECONDS = 120.0
# What a peer puts around it makes it as long as ours.
_PEER_BYTES = 1_050
_RATES: dict[Engine, Goal] = {
    "SQLite": Goal(floor=3_000, aim=10_000, more_is_better=True, of="ours"),
    "PostgreSQL": Goal(floor=2_000, aim=6_000, more_is_better=True, of="ours"),
}


def measure(bench: Workbench) -> Iterator[Row]:
    """Webhook deliveries per second with their log written, from prepared rows."""
    events = max(2, round(DELIVERIES * bench.share / WEBHOOKS))
    with sinking(bench.folder, endpoints=WEBHOOKS, core=bench.cores.load) as sink:
        for engine in ENGINES:
            sink.forget()
            drains = run_loop(_drains(bench, bench.site(engine), sink, events=events))
            yield from _rows(engine, drains)
            yield from _beside_peers(bench, engine, sink, drains)


def _rows(engine: Engine, drains: list[Drain]) -> Iterator[Row]:
    rates = [each.rate for each in drains]
    subject = f"webhook deliveries, {engine}"
    row = Row(subject=subject, unit="/s", ours=median(rates), goal=_RATES[engine])
    yield replace(
        row,
        note=f"{drains[0].deliveries:,} of 1.2 kB to {WEBHOOKS} endpoints, signed, attempts "
        f"written; {min(rates):,.0f} to {max(rates):,.0f} over {len(rates)} rounds",
    )
    yield Row(
        subject=f"{subject}, by processor time",
        unit="/s",
        ours=median(each.rate_by_cpu for each in drains),
        note="of the worker's process"
        + (", without those of the database" if engine == "PostgreSQL" else ""),
    )


def _beside_peers(
    bench: Workbench, engine: Engine, sink: Sink, drains: list[Drain]
) -> Iterator[Row]:
    for peer, events in PEERS[engine]:
        try:
            theirs = drain(
                peer,
                bench.site(engine),
                sink,
                events=max(1, round(events * bench.share)),
                size=_PEER_BYTES,
                core=bench.cores.server,
            )
        except PeerUnavailable as error:
            print(f"webhooks, {engine}: {error}", flush=True)
            continue
        subject = f"webhook deliveries, {engine}, against {peer.name}"
        yield _against(subject, [each.rate for each in drains], theirs.rate, theirs)
        ours = [each.rate_by_cpu for each in drains]
        yield _against(f"{subject}, by processor time", ours, theirs.rate_by_cpu, theirs)


def _against(subject: str, ours: Sequence[float], other: float, theirs: Drain) -> Row:
    return Row(
        subject=subject,
        unit="/s",
        ours=median(ours),
        other=other,
        ratios=tuple(each / other for each in ours),
        note=f"{theirs.deliveries:,} deliveries of theirs to the same endpoints",
    )


async def _drains(bench: Workbench, site: Site, sink: Sink, *, events: int) -> list[Drain]:
    async with opened(settings_of(site)) as database:
        scene = await create_scene(database, sink.urls)
        with delivering(site, core=bench.cores.server) as worker:
            done = await warm_up(scene, sink)
            drains: list[Drain] = []
            for _ in range(bench.rounds):
                drains.append(await _drain(scene, worker, sink, events=events))
                done += drains[-1].deliveries
                if missing := await scene.count_unwritten(done):
                    raise Spoiled(f"{missing} deliveries were sent and not written.")
    return drains


async def _drain(scene: Scene, worker: Child, sink: Sink, *, events: int) -> Drain:
    expected = events * scene.webhooks
    async with _held(worker, scene):
        for done in range(0, events, _EVENTS_PER_COMMIT):
            await scene.record(min(_EVENTS_PER_COMMIT, events - done))
        spent = cpu_seconds(worker.id)
        start = time.perf_counter()
    await until(lambda: sink.count() >= expected, seconds=_LONGEST_SECONDS)
    await scene.all_written(seconds=_LONGEST_SECONDS)
    seconds = time.perf_counter() - start
    spent = cpu_seconds(worker.id) - spent
    ids = {each.id for each in sink.arrivals()}
    sink.forget()
    if len(ids) != expected:
        raise Spoiled(f"{len(ids)} different deliveries arrived of {expected}.")
    return Drain(deliveries=expected, seconds=seconds, cpu_seconds=spent)


@asynccontextmanager
async def _held(worker: Child, scene: Scene) -> AsyncIterator[None]:
    """Stop an idle worker for a while: it is running when its work begins, with nothing done."""
    # In a transaction of ours: one that is stopped in the middle of its own keeps SQLite's file locked.
    async with scene.database.transaction() as conn:
        await conn.lock("hold")  # A transaction begins with its first statement.
        hold(worker)
    try:
        yield
    finally:
        os.kill(worker.id, signal.SIGCONT)
