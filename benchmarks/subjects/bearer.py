"""What the bearer check adds to a bare route, without a socket in between."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message

from benchmarks.figures import Goal, Row, Spoiled, compare
from benchmarks.hubs import ENGINES, Engine, a_token, opened
from benchmarks.machine import tied_to
from benchmarks.raw_queries import RawQueries, open_raw_queries
from benchmarks.workbench import Workbench
from hublet.app import create_application, with_edge
from hublet.cli.local_hub import run_loop
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.http import FastRoute
from hublet.tokens.auth import caller_of

_GOAL = Goal(floor=100, aim=30, more_is_better=False, of="ours")
_BATCH = 500
_BATCHES = 9
_PATHS = ("/bare", "/checked", "/by-hand")

Scope = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Micros:
    """What one request took, by the clock and on the processor."""

    wall: float
    cpu: float


def measure(bench: Workbench) -> Iterator[Row]:
    """Microseconds that the bearer check adds to a request."""
    yield _measured(bench, "SQLite", seconds_remembered=1, name="token remembered")
    for engine in ENGINES:
        yield _measured(bench, engine, seconds_remembered=0, name=f"token looked up, {engine}")


def _measured(bench: Workbench, engine: Engine, *, seconds_remembered: float, name: str) -> Row:
    settings = bench.site(engine).settings(
        tokens__cache_seconds=seconds_remembered,
        limits__anonymous_requests=10**9,
        limits__authenticated_requests=10**9,
    )
    with tied_to(bench.cores.server):
        rounds = run_loop(_rounds(settings, count=bench.rounds))
    row = compare(
        f"bearer check, {name}",
        ours=[ours.wall for ours, _ in rounds],
        other=[other.wall for _, other in rounds],
        other_is="the digest and the same SQL on the driver itself",
        unit="µs",
        goal=_GOAL,
    )
    ours, other = (median(each.cpu for each in side) for side in zip(*rounds, strict=True))
    return replace(row, note=f"on our processor {ours:.1f} µs, theirs {other:.1f} µs")


async def _rounds(settings: Settings, *, count: int) -> list[tuple[_Micros, _Micros]]:
    """Return for each round what our check and one by hand add to a bare route."""
    async with opened(settings) as database, open_raw_queries(settings) as hand:
        token = await a_token(database)
        app = _application(database, hand, token)
        # Only the checked route is sent the token, so that all it costs at the edge is counted.
        scopes = [_scope(path, token if path == "/checked" else None) for path in _PATHS]
        await _round(app, scopes)
        rounds = [await _round(app, scopes) for _ in range(count)]
    return [(_over(ours, bare), _over(other, bare)) for bare, ours, other in rounds]


def _application(database: Database, hand: RawQueries, token: str) -> ASGIApp:
    """Return the real hub with three more routes, dispatched by the edge itself."""
    keys = database.hub.keys

    async def bare(_request: Request) -> bytes:
        return b"{}"

    async def checked(request: Request) -> bytes:
        await caller_of(request)
        return b"{}"

    async def looked_up_by_hand(_request: Request) -> bytes:
        await hand.fetch_token(keys.digest("token", token).hex())
        return b"{}"

    app = create_application(database)
    for path, route in zip(_PATHS, (bare, checked, looked_up_by_hand), strict=True):
        app.router.add_api_route(path, route, route_class_override=FastRoute, response_model=None)
    return with_edge(app)


async def _round(app: ASGIApp, scopes: Sequence[Scope]) -> list[_Micros]:
    """Run batches of all routes in turn; a median lets a disturbed one pass without harm."""
    batches = [[await _batch(app, scope) for scope in scopes] for _ in range(_BATCHES)]
    return [
        _Micros(wall=median(each.wall for each in of), cpu=median(each.cpu for each in of))
        for of in zip(*batches, strict=True)
    ]


def _over(route: _Micros, bare: _Micros) -> _Micros:
    return _Micros(wall=route.wall - bare.wall, cpu=route.cpu - bare.cpu)


async def _batch(app: ASGIApp, scope: Scope) -> _Micros:
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(_BATCH):
        await app(dict(scope), _receive, _send)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    # Timers of the loop get their turn between batches, not inside one.
    await asyncio.sleep(0)
    return _Micros(wall=wall / _BATCH * 1e6, cpu=cpu / _BATCH * 1e6)


async def _receive() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _send(message: Message) -> None:
    if message.get("status", 200) != 200:
        raise Spoiled(f"A route answered {message['status']}.")


def _scope(path: str, token: str | None) -> Scope:
    headers = {"host": "hub.test", "user-agent": "benchmarks", "accept": "*/*"}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
