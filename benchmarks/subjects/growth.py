"""Growth as curves: everyday operations in hubs of three to four decades of sizes, drawn."""

import time
from collections.abc import Iterator

from benchmarks.figures import Row
from benchmarks.growth.curves import GrowthCurve, Topic, cost_of, sizes_of
from benchmarks.growth.files import Files
from benchmarks.growth.history import Jobs, Notifications
from benchmarks.growth.hooks import Deliveries, Webhooks
from benchmarks.growth.local_app import local_app
from benchmarks.growth.people import Members, ScimUsers
from benchmarks.growth.report import write_report
from benchmarks.growth.repositories import Repositories
from benchmarks.hubs import ENGINES, Engine, Site
from benchmarks.machine import describe_machine, tied_to
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

TOPICS: tuple[type[Topic], ...] = (
    Repositories,
    Webhooks,
    Deliveries,
    Notifications,
    Members,
    Jobs,
    Files,
    ScimUsers,
)
_OVERRIDES: dict[str, object] = {
    "server__test_mode": True,
    "jobs__runner": "process",
    "jobs__concurrent": 1_000,
    "jobs__cores": 1_000,
    "jobs__memory_bytes": 2**40,
    "logs__level": "warning",
    "webhooks__daily_triggers": 1_000_000_000,
}


def measure(bench: Workbench) -> Iterator[Row]:
    """Growth: everyday operations in a hub with ten to a million times as much, on each engine."""
    curves = list[GrowthCurve]()
    for topic in TOPICS:
        for engine in ENGINES:
            site = bench.site(engine)
            with tied_to(bench.cores.server):
                found = run_loop(_curves(bench, site, topic, engine))
            yield from (each.row() for each in found)
            curves += found
    if bench.share >= 1:
        write_report(curves, describe_machine())


async def _curves(
    bench: Workbench, site: Site, topic: type[Topic], engine: Engine
) -> list[GrowthCurve]:
    curves = dict[str, GrowthCurve]()
    async with local_app(site, engine, **_OVERRIDES) as app:
        grown, before = topic(app), 0
        for size in sizes_of(topic, bench.share):
            start = time.monotonic()
            await grown.grow(before, size)
            await app.settle()
            filled = time.monotonic()
            before = size
            for name, operation in grown.operations().items():
                curve = curves.setdefault(
                    name, GrowthCurve(topic=topic.name, operation=name, engine=engine)
                )
                curve.costs[size] = await cost_of(app, operation)
            took = time.monotonic() - filled
            print(
                f"  {topic.name}, {engine}: {size:,} in {filled - start:.0f} s, measured in {took:.0f} s",
                flush=True,
            )
    return list(curves.values())
