"""From a commit to the first byte at the receiver, when nothing else happens."""

import asyncio
import time
from collections.abc import Iterator

from benchmarks.figures import Goal, Row
from benchmarks.hubs import ENGINES, Site, opened
from benchmarks.latencies import percentile_of
from benchmarks.sink import Sink, sinking
from benchmarks.webhook_scene import (
    WHERE,
    Scene,
    create_scene,
    settings_of,
    until,
    warm_up,
    working,
)
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

EVENTS = 300
_PAUSE_SECONDS = 0.02
_LONGEST_SECONDS = 30.0
_GOAL = Goal(floor=25, aim=10, more_is_better=False, of="ours")


def measure(bench: Workbench) -> Iterator[Row]:
    """Milliseconds from a commit to the first byte at the receiver, when idle."""
    events = max(10, round(EVENTS * bench.share))
    with sinking(bench.folder, endpoints=1, core=bench.cores.load) as sink:
        for engine in ENGINES:
            sink.forget()
            waits = run_loop(_waits(bench, bench.site(engine), sink, events=events))
            yield Row(
                subject=f"commit to first byte when idle, {engine}, p99",
                unit="ms",
                ours=percentile_of(waits, 0.99),
                goal=_GOAL,
                note=f"p50 {percentile_of(waits, 0.5):.1f} ms of {len(waits)} deliveries; "
                f"{WHERE[engine]}",
            )


async def _waits(bench: Workbench, site: Site, sink: Sink, *, events: int) -> list[float]:
    async with opened(settings_of(site)) as database:
        scene = await create_scene(database, sink.urls)
        async with working(bench, site, database):
            return await _all_waits(scene, sink, events)


async def _all_waits(scene: Scene, sink: Sink, events: int) -> list[float]:
    await warm_up(scene, sink)
    committed: list[int] = []
    for _ in range(events):
        await asyncio.sleep(_PAUSE_SECONDS)
        await scene.record(1)
        committed.append(time.monotonic_ns())
        await scene.all_written(seconds=_LONGEST_SECONDS)
    await until(lambda: sink.count() >= events, seconds=_LONGEST_SECONDS)
    # The byte may be there before the one who committed is told: then no time has passed.
    return [
        max(0, each.nanos - moment) / 1e9
        for each, moment in zip(sink.arrivals(), committed, strict=True)
    ]
