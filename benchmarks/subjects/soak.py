"""An hour of mixed load on one hub: what it holds, and whether it grows slower."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks.drawings import Line, draw_lines
from benchmarks.figures import Goal, Row, Spoiled
from benchmarks.growth.report import IMAGES, README, write_section
from benchmarks.hubs import BASE_URL, Engine, ServedHub, Site, opened, populate
from benchmarks.latencies import merged, percentile
from benchmarks.machine import describe_machine, stolen_seconds
from benchmarks.process_trees import cpu_seconds_of_tree
from benchmarks.processes import (
    COMMANDS,
    free_port,
    megabytes_of,
    running,
    wait_until_it_answers,
)
from benchmarks.sink import Sink, sinking
from benchmarks.soak_load import PACES, SoakLoad, SoakTally
from benchmarks.table import number
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

HOUR = 3600.0
# Ten minutes of an hour: the first and the last are held against each other.
PARTS = 6
_SAMPLES = 60
_HEALTHY, _HOLES, _SLOW = 2, 1, 1
_VARIABLES = {
    "HUBLET_TEST_MODE": "1",
    "HUBLET_LIMITS_AUTHENTICATED_REQUESTS": "1000000000",
    "HUBLET_WEBHOOKS_DAILY_TRIGGERS": "1000000000",
    "HUBLET_JOBS_IMAGES": "*=host",
    "HUBLET_JOBS_FLAVORS": "cpu-basic=0.1:64M",
    "HUBLET_JOBS_CONCURRENT": "100",
    "HUBLET_JOBS_CORES": "1000",
    "HUBLET_JOBS_MEMORY_BYTES": str(2**40),
}
_SLOWEST_PACE = max(PACES.values())
_TABLES = (
    "webhook_events",
    "webhook_deliveries",
    "webhook_attempts",
    "comments",
    "jobs",
    "notifications",
    "outbox",
    "tasks",
    "search_texts",
)
_FLAT = Goal(aim=1.1, more_is_better=False, of="ratio")
_AS_FAST = Goal(aim=1.2, more_is_better=False, of="ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakSample:
    """What the serving process holds at one moment, what lies on the disk, and processor time so far."""

    at: float
    memory: float
    descriptors: float
    threads: float
    database: float
    log: float
    processor: float
    # By other machines of the same host.
    stolen: float


class _Beside:
    """What each thing took afterwards, of this hub and at the same time of a new one with the same load.

    Whoever else uses the host, at one hour more than at another, slows both.
    """

    def __init__(self, *, seconds: float) -> None:
        self.old, self.young = (SoakTally(parts=1, seconds=seconds) for _ in range(2))


def measure(bench: Workbench) -> Iterator[Row]:
    """An hour of commits, pushes, comments, lists, jobs, streams and deliveries: what stays flat (SQLite)."""
    yield from _measure(bench, "SQLite")


def measure_postgresql(bench: Workbench) -> Iterator[Row]:
    """The same hour on PostgreSQL."""
    yield from _measure(bench, "PostgreSQL")


def _measure(bench: Workbench, engine: Engine) -> Iterator[Row]:
    seconds = HOUR if bench.asked_seconds is None else bench.asked_seconds
    site, machine = bench.site(engine), describe_machine()
    token = run_loop(populate(site.settings()))
    tally = SoakTally(parts=PARTS, seconds=seconds)
    young = bench.site(engine)
    endpoints = _HEALTHY + _HOLES + _SLOW
    with (
        sinking(bench.folder, endpoints=endpoints, slow=_SLOW, core=bench.cores.load) as sink,
        _serving(site) as hub,
    ):
        samples, beside = run_loop(_soak(site, hub, token, young, sink, tally))
    failures = tally.failures + beside.old.failures + beside.young.failures
    if failures:
        print("\n".join(f"  {count} times {text}" for text, count in failures.most_common(5)))
    rows = [*_flat_rows(engine, samples), _processor_row(engine, samples)]
    rows += [*_speed_rows(engine, tally), *_beside_rows(engine, beside)]
    held = run_loop(_largest_tables(site))
    if seconds >= HOUR and engine == "SQLite":
        _write_report(rows, samples, tally, held, machine)
    else:
        print(_sizes_text(samples, tally, held))
    yield from rows
    if failures:
        raise Spoiled(f"{failures.total()} requests failed: {failures.most_common(1)}")


@contextmanager
def _serving(site: Site) -> Iterator[ServedHub]:
    """Run a hub whose jobs and deliveries may reach this machine."""
    port = free_port()
    serve = [str(COMMANDS / "hublet"), "serve", "--port", str(port), "--base-url", BASE_URL]
    output = site.folder / "hub.log"
    with running([*serve, *site.flags], output=output, variables=_VARIABLES) as child:
        wait_until_it_answers(child, port, "/healthz")
        yield ServedHub(child=child, port=port)


async def _soak(
    site: Site, hub: ServedHub, token: str, young: Site, sink: Sink, tally: SoakTally
) -> tuple[list[SoakSample], _Beside]:
    # A short run is there to see that all of it works.
    faster = 1.0 if tally.seconds >= _SLOWEST_PACE * PARTS else 5.0
    # Nobody listens at the last address.
    receivers = [*sink.urls, f"http://127.0.0.1:{free_port()}/hook"]
    async with _loading(site, hub, token) as load:
        await load.prepare(receivers)
        await asyncio.to_thread(sink.make_holes, _HOLES)
        watching = asyncio.create_task(_watch(site, hub, sink, seconds=tally.seconds))
        await load.run(tally, faster=faster)
        samples = await watching
        other_token = await populate(young.settings())
        with _serving(young) as other:
            async with _loading(young, other, other_token) as other_load:
                await other_load.prepare(receivers)
                beside = _Beside(seconds=tally.seconds / PARTS)
                # What a hub loads with the first request of a kind is no part of it.
                warm_up = SoakTally(parts=1, seconds=beside.young.seconds / 5)
                await other_load.run(warm_up, faster=faster)
                await asyncio.gather(
                    load.run(beside.old, faster=faster), other_load.run(beside.young, faster=faster)
                )
    return samples, beside


@asynccontextmanager
async def _loading(site: Site, hub: ServedHub, token: str) -> AsyncIterator[SoakLoad]:
    load = SoakLoad(hub, token, site.folder / "work")
    try:
        yield load
    finally:
        await load.close()


async def _watch(site: Site, hub: ServedHub, sink: Sink, *, seconds: float) -> list[SoakSample]:
    start, samples = time.monotonic(), list[SoakSample]()
    for turn in range(1, _SAMPLES + 1):
        await asyncio.sleep(max(0.0, start + turn * seconds / _SAMPLES - time.monotonic()))
        taken = await asyncio.to_thread(_sample, site, hub.child.id, start)
        samples.append(taken)
        if turn % (_SAMPLES // 10) == 0:
            print(
                f"  {taken.at:,.0f} s: {taken.memory:.0f} MB, {taken.descriptors:.0f} descriptors, "
                f"{taken.threads:.0f} threads, database {taken.database:.1f} MB",
                flush=True,
            )
        # Otherwise it would hold what an hour has brought.
        await asyncio.to_thread(sink.forget)
    return samples


def _sample(site: Site, process_id: int, start: float) -> SoakSample:
    process = Path(f"/proc/{process_id}")
    sizes = [
        each.stat().st_size / 1e6 if (each := site.data_dir / name).exists() else 0.0
        for name in ("hub.db", "hub.db-wal")
    ]
    return SoakSample(
        at=time.monotonic() - start,
        memory=megabytes_of(process_id)["VmRSS"],
        descriptors=len(list((process / "fd").iterdir())),
        threads=len(list((process / "task").iterdir())),
        database=sizes[0],
        log=sizes[1],
        processor=cpu_seconds_of_tree(process_id),
        stolen=stolen_seconds(),
    )


def _flat_rows(engine: Engine, samples: Sequence[SoakSample]) -> Iterator[Row]:
    """Hold the last tenth against the one after the first, in which all caches were filled."""
    tenth = len(samples) // 10
    warm, last = samples[tenth : 2 * tenth], samples[-tenth:]
    for name, unit in (("memory", "MB"), ("descriptors", ""), ("threads", "")):
        before, after = (mean(getattr(each, name) for each in part) for part in (warm, last))
        yield Row(
            subject=f"soak: {name} in the last tenth, {engine}",
            unit=unit,
            ours=after,
            other=before,
            other_is="the second tenth",
            ratios=(after / before,),
            goal=_FLAT,
            note=f"at the most {max(getattr(each, name) for each in samples):.0f}",
        )


def _processor_row(engine: Engine, samples: Sequence[SoakSample]) -> Row:
    """Hold what the hub and its children took in the last sixth against the first, under the same load.

    It is what the hub itself does; the p99 below is also made by whoever else uses the host.
    """
    sixth = len(samples) // PARTS
    (before, stolen), (after, stolen_later) = (
        tuple(
            (getattr(part[-1], name) - getattr(part[0], name)) / (part[-1].at - part[0].at)
            for name in ("processor", "stolen")
        )
        for part in (samples[:sixth], samples[-sixth:])
    )
    return Row(
        subject=f"soak: processor time in the last sixth, {engine}",
        unit="ms/s",
        ours=after * 1000,
        other=before * 1000,
        other_is="the first sixth",
        ratios=(after / before,),
        goal=_AS_FAST,
        note=f"of the hub and its children; others took {stolen * 1000:.0f} and "
        f"{stolen_later * 1000:.0f} ms/s from this machine",
    )


def _speed_rows(engine: Engine, tally: SoakTally) -> Iterator[Row]:
    for name in PACES:
        parts = tally.latencies.get(name, [])
        if not parts:
            raise Spoiled(f"There was no {name} that ended well.")
        if not (parts[0] and parts[-1]):
            # A run that is too short to say.
            continue
        first, *between, last = (percentile(part, 0.99) for part in parts if part)
        yield Row(
            subject=f"soak: {name}, p99 in the last sixth, {engine}",
            unit="ms",
            ours=last,
            other=first,
            other_is="the first sixth",
            ratios=(last / first,),
            goal=_AS_FAST,
            note=f"p50 {percentile(merged(parts), 0.5):.1f} ms of {tally.count(name):,}; "
            f"p99 in between {', '.join(f'{each:.0f}' for each in between)}",
        )


def _beside_rows(engine: Engine, beside: _Beside) -> Iterator[Row]:
    for name in PACES:
        if not (beside.old.count(name) and beside.young.count(name)):
            # As above.
            continue
        old, young = (merged(each.latencies[name]) for each in (beside.old, beside.young))
        yield Row(
            subject=f"soak: {name}, p99 after it, {engine}",
            unit="ms",
            ours=percentile(old, 0.99),
            other=percentile(young, 0.99),
            other_is="a new hub at the same time",
            ratios=(percentile(old, 0.99) / percentile(young, 0.99),),
            goal=_AS_FAST,
            note=f"p50 {percentile(old, 0.5):.1f} against {percentile(young, 0.5):.1f} ms; "
            f"p90 {percentile(old, 0.9):.1f} against {percentile(young, 0.9):.1f} ms",
        )


async def _largest_tables(site: Site) -> Mapping[str, int]:
    """Return how many rows the fullest tables have."""
    async with opened(site.settings()) as database, database.read() as conn:
        return {table: await conn.fetch_value(f"SELECT count(*) FROM {table}") for table in _TABLES}


def _sizes_text(samples: Sequence[SoakSample], tally: SoakTally, rows: Mapping[str, int]) -> str:
    first, last = samples[0], samples[-1]
    written = sum(tally.count(name) for name in ("commit", "push", "comment", "job"))
    kilobytes = (last.database - first.database) * 1000 / max(written, 1)
    held = ", ".join(f"{count:,} {table}" for table, count in rows.items())
    memory = ", ".join(f"{each.memory:.0f}" for each in samples[:: len(samples) // 10])
    return (
        f"The database grew from {first.database:.1f} to {last.database:.1f} MB in {written:,} changes, "
        f"{kilobytes:.1f} kB for each; its log had {max(each.log for each in samples):.1f} MB at the most. "
        f"Memory in MB, ten times: {memory}. "
        f"The database holds {held}: each change has its event, five deliveries and their attempts."
    )


def _write_report(
    rows: Sequence[Row],
    samples: Sequence[SoakSample],
    tally: SoakTally,
    held: Mapping[str, int],
    machine: Mapping[str, str],
) -> None:
    lines = [
        Line(label=name, points=[(each.at / 60, getattr(each, name) / base) for each in samples])
        for name in ("memory", "descriptors", "threads")
        for base in [getattr(samples[len(samples) // 10], name)]
    ]
    title = "An hour of load: multiples of what there was after six minutes"
    drawing = draw_lines(title, lines, x="minutes", y="multiple", limit=1.1)
    (IMAGES / "soak.svg").write_text(drawing, encoding="utf-8")
    table = [
        f"| {row.subject} | {number(row.other or 0)} {row.unit} | {number(row.ours)} {row.unit} | "
        f"{number(row.ratio or 0)} | {row.verdict} | {row.note} |"
        for row in rows
    ]
    text = [
        f"Taken at {machine['taken at']}, load average before {machine['load average before']}.",
        "",
        "![What the hub holds in an hour](../docs/images/soak.svg)",
        "",
        "| | before | in the end | ratio | verdict | |",
        "|---|--:|--:|--:|---|---|",
        *table,
        "",
        _sizes_text(samples, tally, held),
    ]
    write_section(README, "soak", "\n".join(text))
