"""From `hublet serve` to its first answer, against the least that starts on this stack."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import median

from benchmarks.figures import Goal, Row, compare
from benchmarks.hubs import Site, starting
from benchmarks.processes import (
    ROOT,
    clean_environment,
    fetch,
    free_port,
    running,
    wait_until_it_answers,
)
from benchmarks.workbench import Workbench

_TIMES = 5
_SHOWN_PACKAGES = 7
_PAGE_GOAL = Goal(floor=100, more_is_better=False, of="ours")
_GOAL = Goal(floor=2.0, aim=0.7, more_is_better=False, of="ours")


def measure(bench: Workbench) -> Iterator[Row]:
    """Seconds from the command to the first answer of /healthz, on SQLite."""
    first: list[float] = []
    later: list[float] = []
    asked: list[float] = []
    bare: list[float] = []
    for _ in range(_TIMES):
        site = bench.site("SQLite")
        first.append(_seconds_to_start(site))
        later.append(_seconds_to_start(site))
        asked.append(_seconds_to_start(site, path="/api/agent-harnesses"))
        bare.append(_seconds_to_start_bare(site))
    note = f"with migrations, keys and the first administrator; {_where_it_goes()}"
    yield replace(_row("start from nothing", ours=first, bare=bare), note=note)
    yield _row("start again", ours=later, bare=bare)
    yield replace(
        _row("start again, to the first answer of a route", ours=asked, bare=bare),
        note="not of /healthz, which answers while the application is still being loaded",
    )
    pages = [_millis_of_first_page(bench.site("SQLite")) for _ in range(_TIMES)]
    yield Row(subject="first GET / after a start", unit="ms", ours=median(pages), goal=_PAGE_GOAL)


def _row(subject: str, *, ours: list[float], bare: list[float]) -> Row:
    other_is = "FastAPI and uvicorn with one route"
    return compare(subject, ours=ours, other=bare, other_is=other_is, unit="s", goal=_GOAL)


def _seconds_to_start(site: Site, path: str = "/healthz") -> float:
    start = time.perf_counter()
    with starting(site) as hub:
        wait_until_it_answers(hub.child, hub.port, path)
        return time.perf_counter() - start


def _millis_of_first_page(site: Site) -> float:
    with starting(site) as hub:
        wait_until_it_answers(hub.child, hub.port, "/healthz")
        start = time.perf_counter()
        fetch(hub.port, "/")
        return (time.perf_counter() - start) * 1000


def _seconds_to_start_bare(site: Site) -> float:
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.bare", str(port)]
    start = time.perf_counter()
    with running(command, output=site.folder / "bare.log") as child:
        wait_until_it_answers(child, port, "/healthz")
        return time.perf_counter() - start


def _where_it_goes() -> str:
    """Tell which packages take the time of importing the server."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import hublet.cli, hublet.serving"],
        cwd=ROOT,
        env=clean_environment(),
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    )
    packages = import_millis(done.stderr.splitlines())
    largest = sorted(packages.items(), key=lambda each: -each[1])[:_SHOWN_PACKAGES]
    shown = ", ".join(f"{name} {millis:.0f}" for name, millis in largest)
    return f"imports {sum(packages.values()):.0f} ms under -X importtime: {shown}"


def import_millis(lines: Iterable[str]) -> dict[str, float]:
    """Add up what `-X importtime` says each package took itself, without what it imports."""
    packages: Counter[str] = Counter()
    for line in lines:
        own, _, rest = line.removeprefix("import time:").partition("|")
        if own.strip().isdigit():
            name = rest.partition("|")[2].strip()
            packages[name.partition(".")[0]] += int(own)
    return {name: micros / 1000 for name, micros in packages.items()}
