"""`GET /api/notifications` of the real hub against a bare route with the same SQL."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from benchmarks.figures import Goal, Row, Spoiled, compare
from benchmarks.hubs import BASE_URL, Engine, ServedHub, Site, serving
from benchmarks.inboxes import Crowd
from benchmarks.notification_ceiling import PATH
from benchmarks.processes import fetch, free_port, running, wait_until_it_answers
from benchmarks.rounds import LoadTarget, alternate, request_bytes
from benchmarks.workbench import Workbench

CONNECTIONS = 32
_GOAL = Goal(floor=0.5, aim=0.8, more_is_better=True, of="ratio")
_ITEMS = 25


def page_rows(bench: Workbench, engine: Engine, site: Site, crowd: Crowd) -> Iterator[Row]:
    headers = {"authorization": f"Bearer {crowd.small_token}"}
    core = bench.cores.server
    with serving(site, core=core) as hub, _ceiling(site, crowd, headers, core=core) as bare:
        _insist_on_the_same_answer(hub, bare, headers)
        rounds = alternate(
            [_target("ours", hub, headers), _target("bare", bare, headers)],
            connections=CONNECTIONS,
            seconds=bench.seconds,
            rounds=bench.rounds,
            core=bench.cores.load,
        )
    ours, other = rounds["ours"], rounds["bare"]
    yield compare(
        f"page of {_ITEMS} notifications, {engine}",
        ours=[each.rate for each in ours],
        other=[each.rate for each in other],
        other_is="a bare Starlette route with the same SQL",
        unit="/s",
        goal=_GOAL,
    )
    yield compare(
        f"page of {_ITEMS} notifications, {engine}, by processor time",
        ours=[1e6 / each.cpu_micros for each in ours],
        other=[1e6 / each.cpu_micros for each in other],
        other_is="",
        unit="/s",
        goal=_GOAL,
    )


def _target(name: str, server: ServedHub, headers: Mapping[str, str]) -> LoadTarget:
    request = request_bytes("GET", PATH, headers=headers)
    return LoadTarget(name=name, process_id=server.child.id, port=server.port, request=request)


@contextmanager
def _ceiling(
    site: Site, crowd: Crowd, headers: Mapping[str, str], *, core: int | None
) -> Iterator[ServedHub]:
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.notification_ceiling", "--port", str(port)]
    who = ["--user-id", crowd.small, "--token", crowd.small_token]
    with running(
        [*command, "--base-url", BASE_URL, *who, *site.flags],
        output=site.folder / "ceiling.log",
        core=core,
    ) as child:
        wait_until_it_answers(child, port, PATH, headers)
        yield ServedHub(child=child, port=port)


def _insist_on_the_same_answer(hub: ServedHub, bare: ServedHub, headers: Mapping[str, str]) -> None:
    ours, theirs = fetch(hub.port, PATH, headers), fetch(bare.port, PATH, headers)
    if ours != theirs:
        raise Spoiled(f"The bare route does not do the same work: {ours} and {theirs}.")
    if len(json.loads(ours[1])["notifications"]) != _ITEMS:
        raise Spoiled(f"The page is not full: {ours}.")
