"""Resident memory of `hublet serve`: at rest, and after many requests."""

import time
from collections.abc import Iterator

from benchmarks.figures import Goal, Row
from benchmarks.hubs import ENGINES, Engine, populate, serving
from benchmarks.load import LoadPlan
from benchmarks.processes import megabytes_of
from benchmarks.rounds import apply_load, request_bytes
from benchmarks.subjects.whoami import CONNECTIONS, PATH
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

REQUESTS = 20_000
_REST_SECONDS = 3.0
_LONGEST_SECONDS = 120.0
_GOAL = Goal(aim=120, more_is_better=False, of="ours")


def measure(bench: Workbench) -> Iterator[Row]:
    """Megabytes that the serving process holds, at rest and after 20,000 requests."""
    for engine in ENGINES:
        yield from _on(bench, engine)


def _on(bench: Workbench, engine: Engine) -> Iterator[Row]:
    site = bench.site(engine)
    token = run_loop(populate(site.settings()))
    request = request_bytes("GET", PATH, headers={"authorization": f"Bearer {token}"})
    with serving(site, core=bench.cores.server) as hub:
        time.sleep(_REST_SECONDS)
        yield _row(f"memory at rest, {engine}", hub.child.id)
        plan = LoadPlan(
            port=hub.port,
            request=request,
            connections=CONNECTIONS,
            seconds=_LONGEST_SECONDS,
            most=REQUESTS,
            core=bench.cores.load,
        )
        answers = apply_load(plan, name=PATH).answers
        yield _row(f"memory after {answers:,} requests, {engine}", hub.child.id)


def _row(subject: str, process_id: int) -> Row:
    megabytes = megabytes_of(process_id)
    return Row(
        subject=subject,
        unit="MB",
        ours=megabytes["VmRSS"],
        goal=_GOAL,
        note=f"{megabytes['VmHWM']:.0f} MB at the most",
    )
