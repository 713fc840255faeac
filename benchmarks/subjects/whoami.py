"""`GET /api/whoami-v2` of the real hub against a bare function with the same SQL."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from benchmarks import ceiling
from benchmarks.figures import Goal, Row, Spoiled, compare
from benchmarks.hubs import BASE_URL, ENGINES, Engine, ServedHub, Site, populate, serving
from benchmarks.latencies import merged, percentile
from benchmarks.processes import fetch, free_port, running, wait_until_it_answers
from benchmarks.rounds import LoadTarget, Round, alternate, request_bytes
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

PATH = "/api/whoami-v2"
CONNECTIONS = 32
_GOAL = Goal(floor=0.5, aim=0.8, more_is_better=True, of="ratio")
_CEILINGS = {
    ceiling.LOOKING_UP: "a bare function that looks the token up each time",
    ceiling.REMEMBERING: "a bare function that remembers the token for as long as ours",
}


def measure(bench: Workbench) -> Iterator[Row]:
    """Whoami over HTTP, as a share of a bare ASGI function on the same server."""
    for engine in ENGINES:
        yield from _on(bench, engine)


def _on(bench: Workbench, engine: Engine) -> Iterator[Row]:
    site = bench.site(engine)
    headers = {"authorization": f"Bearer {run_loop(populate(site.settings()))}"}
    core = bench.cores.server
    with serving(site, core=core) as hub, _ceiling(site, headers, core=core) as bare:
        places = {PATH: hub} | dict.fromkeys(_CEILINGS, bare)
        _insist_on_the_same_answer(places, headers)
        rounds = alternate(
            [_target(path, server, headers) for path, server in places.items()],
            connections=CONNECTIONS,
            seconds=bench.seconds,
            rounds=bench.rounds,
            core=bench.cores.load,
        )
    for path in _CEILINGS:
        yield from _rows(engine, path, ours=rounds[PATH], other=rounds[path])


def _rows(
    engine: Engine, path: str, *, ours: Sequence[Round], other: Sequence[Round]
) -> Iterator[Row]:
    subject = f"whoami, {engine}, {path.strip('/')}"
    row = compare(
        subject,
        ours=[each.rate for each in ours],
        other=[each.rate for each in other],
        other_is=_CEILINGS[path],
        unit="/s",
        goal=_GOAL,
    )
    yield replace(row, note=f"ours {_times(ours)}, theirs {_times(other)}")
    # Where others use the machine too, the processor's own time is the steadier figure.
    yield compare(
        f"{subject}, by processor time",
        ours=[1e6 / each.cpu_micros for each in ours],
        other=[1e6 / each.cpu_micros for each in other],
        other_is="",
        unit="/s",
        goal=_GOAL,
    )


def _target(path: str, server: ServedHub, headers: Mapping[str, str]) -> LoadTarget:
    request = request_bytes("GET", path, headers=headers)
    return LoadTarget(name=path, process_id=server.child.id, port=server.port, request=request)


@contextmanager
def _ceiling(site: Site, headers: Mapping[str, str], *, core: int | None) -> Iterator[ServedHub]:
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.ceiling", "--port", str(port)]
    with running(
        [*command, "--base-url", BASE_URL, *site.flags],
        output=site.folder / "ceiling.log",
        core=core,
    ) as child:
        wait_until_it_answers(child, port, ceiling.LOOKING_UP, headers)
        yield ServedHub(child=child, port=port)


def _insist_on_the_same_answer(places: Mapping[str, ServedHub], headers: Mapping[str, str]) -> None:
    answers = [fetch(server.port, path, headers) for path, server in places.items()]
    if len(set(answers)) > 1:
        raise Spoiled(f"The ceiling does not do the same work: {answers}.")
    if len(json.loads(answers[0][1])["orgs"]) != 2:
        raise Spoiled(f"The user is not the one that was made: {answers[0]}.")


def _times(rounds: Sequence[Round]) -> str:
    counts = merged(each.latencies for each in rounds)
    return f"p50 {percentile(counts, 0.5):.1f} ms and p99 {percentile(counts, 0.99):.1f} ms"
