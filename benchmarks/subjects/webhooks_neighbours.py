"""What healthy endpoints notice of others that accept everything and never answer."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from benchmarks.figures import Goal, Row, Spoiled, compare
from benchmarks.hubs import ENGINES, Engine, Site, opened
from benchmarks.latencies import percentile_of
from benchmarks.sink import Arrival, Sink, sinking
from benchmarks.webhook_scene import (
    WEBHOOKS,
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

HOLES = WEBHOOKS // 5
# Longer than the deadline of an attempt: the holes fill up, time out and become degraded.
SECONDS = 20.0
_EVENTS_PER_SECOND = 10
_LONGEST_SECONDS = 60.0
_GOAL = Goal(floor=1.5, aim=1.1, more_is_better=False, of="ratio")


def measure(bench: Workbench) -> Iterator[Row]:
    """p99 of healthy endpoints beside 20 % black holes, against a hub without any."""
    events = max(10, round(SECONDS * _EVENTS_PER_SECOND * bench.share))
    with sinking(bench.folder, endpoints=WEBHOOKS, core=bench.cores.load) as sink:
        for engine in ENGINES:
            yield _row(bench, engine, sink, events=events)


def _row(bench: Workbench, engine: Engine, sink: Sink, *, events: int) -> Row:
    ours: list[float] = []
    other: list[float] = []
    middle: list[float] = []
    # One more disturbs the machine for a minute, and two rounds tell as much as four.
    for _ in range(min(2, bench.rounds)):
        without, beside = run_loop(_both(bench, bench.site(engine), sink, events=events))
        other.append(percentile_of(without, 0.99))
        ours.append(percentile_of(beside, 0.99))
        middle.append(percentile_of(beside, 0.5))
    row = compare(
        f"healthy endpoints beside {HOLES} black holes of {WEBHOOKS}, {engine}, p99",
        ours=ours,
        other=other,
        other_is="the same endpoints when all of them answer",
        unit="ms",
        goal=_GOAL,
    )
    rate = _EVENTS_PER_SECOND * WEBHOOKS
    return replace(
        row,
        note=f"commit to first byte at {rate} deliveries a second; p50 {median(middle):.1f} ms; "
        f"{WHERE[engine]}",
    )


async def _both(
    bench: Workbench, site: Site, sink: Sink, *, events: int
) -> tuple[list[float], list[float]]:
    async with opened(settings_of(site)) as database:
        scene = await create_scene(database, sink.urls)
        async with working(bench, site, database):
            sink.forget()
            await warm_up(scene, sink)
            without = await _waits(scene, sink, events=events)
            await scene.all_written(seconds=_LONGEST_SECONDS)
            sink.make_holes(HOLES)
            try:
                beside = await _waits(scene, sink, events=events)
            finally:
                sink.make_holes(0)
    return without, beside


async def _waits(scene: Scene, sink: Sink, *, events: int) -> list[float]:
    """Let things happen at a steady rate, and return what each healthy endpoint waited."""
    sink.forget()
    committed: list[int] = []
    start = time.monotonic()
    for number in range(events):
        await asyncio.sleep(max(0.0, start + number / _EVENTS_PER_SECOND - time.monotonic()))
        await scene.record(1)
        committed.append(time.monotonic_ns())
    expected = events * (scene.webhooks - HOLES)

    def all_there() -> bool:
        return len(_healthy(sink.arrivals())) >= expected

    await until(all_there, seconds=_LONGEST_SECONDS)
    return waits_of(_healthy(sink.arrivals()), committed)


def _healthy(arrivals: Sequence[Arrival]) -> list[Arrival]:
    return [each for each in arrivals if each.endpoint >= HOLES]


def waits_of(arrivals: Sequence[Arrival], committed: Sequence[int]) -> list[float]:
    """Return the seconds from each commit to each endpoint's arrival of it.

    Ids are sorted by time, so the n-th id of an endpoint is what the n-th commit caused.
    """
    by_endpoint: dict[int, dict[str, int]] = {}
    for each in arrivals:
        by_endpoint.setdefault(each.endpoint, {}).setdefault(each.id, each.nanos)
    waits: list[float] = []
    for first_bytes in by_endpoint.values():
        if len(first_bytes) != len(committed):
            raise Spoiled(f"{len(first_bytes)} of {len(committed)} events reached an endpoint.")
        moments = zip(sorted(first_bytes), committed, strict=True)
        waits += [max(0, first_bytes[key] - moment) / 1e9 for key, moment in moments]
    return waits
