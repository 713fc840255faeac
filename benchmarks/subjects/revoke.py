"""`POST /api/credentials/revoke`: its latency, when a token fails, what its time tells.

A token must fail everywhere within a second after the report. On PostgreSQL it is reported to one
server and used at another, on SQLite both are the same; the time runs from the report to the first
refusal.

The last part proves that nobody learns from the time of a call whether a token exists. Tokens
that work and tokens that were never issued are reported in random order, one call after the other,
to a hub whose worker runs beside it, each after the work of the one before is done. Two clocks are
read: the time that passed, as a caller sees it, and that which this process worked, on which other
work of the machine has little influence; the clock that tells more counts. The AUC of Mann and
Whitney is the chance that a call with a real token took longer than one with an unknown token: 0.5
when time tells nothing, 1 when it tells all. Of n calls of each kind its standard deviation is
sqrt((2n + 1) / 12n²) if time tells nothing; four of them are the bound, which chance breaks once in
16,000 times. A look-up inside the call must break the bound on the same machine: the method would
see the leak if there was one.
"""

import asyncio
import random
import time
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from math import sqrt
from unittest.mock import patch

import httpx2
import msgspec

from benchmarks.figures import Goal, Row, Spoiled
from benchmarks.hubs import BASE_URL, ENGINES, Engine, ServedHub, Site, opened, serving
from benchmarks.latencies import percentile, percentile_of
from benchmarks.load import LoadPlan
from benchmarks.rounds import apply_load, request_bytes
from benchmarks.workbench import Workbench
from hublet.accounts.users.service import create_user
from hublet.app import create_application, with_edge
from hublet.cli.local_hub import run_loop
from hublet.core.config import Settings
from hublet.core.database import Connection, Database
from hublet.testing.child import store as work
from hublet.tokens import service
from hublet.tokens.format import TokenKind, new_credential
from hublet.tokens.records import TokenRole
from hublet.worker import Worker

_PATH = "/api/credentials/revoke"
_ITEMS = (1, 1000)
_REQUESTS = 500
_WARM_UP_REQUESTS = 20
_GOAL = Goal(aim=30, more_is_better=False, of="ours")
_REVOKED_TOKENS = 100
_FEWEST_REVOKED_TOKENS = 3
_PROMISE = Goal(floor=1000, more_is_better=False, of="ours")
# Of each kind.
_TIMED_CALLS = 400
_FEWEST_TIMED_CALLS = 20
# What a look-up costs is multiplied, the noise of a call is not.
_VALUES_PER_CALL = 3
_CLOCKS = (time.perf_counter_ns, time.process_time_ns)


def measure(bench: Workbench) -> Iterator[Row]:
    """Latency of one caller that reports leaked tokens; when they fail; what its time tells."""
    for engine in ENGINES:
        with serving(bench.site(engine), core=bench.cores.server) as hub:
            for items in _ITEMS:
                yield _row(bench, hub, subject=f"revoke {items:,}, {engine}, p99", items=items)
    for engine in ENGINES:
        yield _row_of_effect(bench, engine)
    calls = max(_FEWEST_TIMED_CALLS, round(_TIMED_CALLS * bench.share))
    for engine in ENGINES:
        settings = bench.site(engine).settings(server__test_mode=True)
        yield from run_loop(_timing_rows(settings, engine, calls=calls))


def _row(bench: Workbench, hub: ServedHub, *, subject: str, items: int) -> Row:
    values = [new_credential("hf_", TokenKind.access) for _ in range(items)]
    request = request_bytes("POST", _PATH, body=msgspec.json.encode({"credentials": values}))

    def load(requests: int) -> dict[int, int]:
        plan = LoadPlan(
            port=hub.port,
            request=request,
            connections=1,
            seconds=bench.seconds * bench.rounds,
            most=requests,
            core=bench.cores.load,
        )
        return apply_load(plan, name=subject).latencies

    load(_WARM_UP_REQUESTS)
    latencies = load(_REQUESTS)
    return Row(
        subject=subject,
        unit="ms",
        ours=percentile(latencies, 0.99),
        goal=_GOAL if items == max(_ITEMS) else None,
        note=f"p50 {percentile(latencies, 0.5):.1f} ms of {sum(latencies.values())} requests",
    )


def _row_of_effect(bench: Workbench, engine: Engine) -> Row:
    """Measure from the report at one server to the first refusal at the other."""
    site = bench.site(engine)
    count = max(_FEWEST_REVOKED_TOKENS, round(_REVOKED_TOKENS * bench.share))
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(site))]
        if site.database_url is not None:
            servers.append(stack.enter_context(serving(site)))
        here, there = (
            stack.enter_context(httpx2.Client(base_url=f"http://127.0.0.1:{each.port}"))
            for each in (servers[0], servers[-1])
        )
        seconds = [
            _seconds_until_refused(here, there, token) for token in _site_tokens(site, count)
        ]
    return Row(
        subject=f"revoke: until a token fails at {'another' if len(servers) > 1 else 'the'} server, {engine}",
        unit="ms",
        ours=max(seconds) * 1000,
        goal=_PROMISE,
        note=f"the slowest of {count}, p50 {percentile_of(seconds, 0.5):.1f} ms",
    )


def _site_tokens(site: Site, count: int) -> list[str]:
    async def issue() -> list[str]:
        async with opened(site.settings()) as database:
            return await _tokens(database, count)

    return run_loop(issue())


def _seconds_until_refused(here: httpx2.Client, there: httpx2.Client, token: str) -> float:
    headers = {"Authorization": f"Bearer {token}"}
    # Twice, so that the server remembers whose it is.
    for _ in range(2):
        assert there.get("/api/whoami-v2", headers=headers).status_code == 200
    started_at = time.perf_counter()
    assert here.post(_PATH, json={"credentials": [token]}).status_code == 202
    while (status := there.get("/api/whoami-v2", headers=headers).status_code) == 200:
        pass
    seconds = time.perf_counter() - started_at
    if status != 401:
        raise Spoiled(f"A revoked token was answered with {status}, not with 401.")
    return seconds


async def _timing_rows(settings: Settings, engine: str, *, calls: int) -> list[Row]:
    bound = 4 * sqrt((2 * calls + 1) / (12 * calls**2))
    async with calling(settings) as (caller, database):
        told = abs(await _auc(caller, database, calls=calls) - 0.5)
        with patch.object(service, "report", _report_at_once):
            leak = await _auc(caller, database, calls=calls) - 0.5
    note = f"distance of the AUC from 0.5, {calls} calls of each kind"
    return [
        Row(
            subject=f"revoke: what time tells of a token, {engine}",
            unit="",
            ours=told,
            goal=Goal(floor=bound, more_is_better=False, of="ours"),
            note=note,
        ),
        Row(
            subject=f"revoke: the same with a look-up inside the call, {engine}",
            unit="",
            ours=leak,
            goal=Goal(floor=bound, more_is_better=True, of="ours"),
            note="the method sees a leak if this is above the floor",
        ),
    ]


@asynccontextmanager
async def calling(settings: Settings) -> AsyncIterator[tuple[httpx2.AsyncClient, Database]]:
    """Open a hub whose worker runs, in this process, and a client that calls it."""
    async with opened(settings) as database:
        app = create_application(database)
        app.state.callers.start()
        worker = Worker(database)
        worker.start()
        transport = httpx2.ASGITransport(app=with_edge(app))
        try:
            async with httpx2.AsyncClient(transport=transport, base_url=BASE_URL) as client:
                yield client, database
        finally:
            await worker.stop()
            await app.state.callers.stop()


async def _report_at_once(conn: Connection, values: Sequence[str], *, address: str) -> None:
    digests = [digest for value in values for digest in service.digests_of(conn.hub.keys, value)]
    await service.revoke_reported(
        conn, service.ReportedCredentials(digests=digests, address=address)
    )


async def _auc(caller: httpx2.AsyncClient, database: Database, *, calls: int) -> float:
    """Return how well the time of a call tells a real token from an unknown one."""
    real = await _tokens(database, calls * _VALUES_PER_CALL)
    unknown = [new_credential("hf_", TokenKind.access) for _ in real]
    reports = [(values, True) for values in _in_calls(real)]
    reports += [(values, False) for values in _in_calls(unknown)]
    times: dict[bool, list[list[int]]] = {True: [], False: []}
    for values, is_real in random.sample(reports, k=len(reports)):
        started_at = [read() for read in _CLOCKS]
        response = await caller.post(_PATH, json={"credentials": values})
        times[is_real].append([read() - at for read, at in zip(_CLOCKS, started_at, strict=True)])
        assert response.status_code == 202
        # The work that follows a report would fall on the calls after it, at random.
        while await _is_busy(database):  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.001)
    by_clock = zip(zip(*times[True], strict=True), zip(*times[False], strict=True), strict=True)
    aucs = [mann_whitney_auc(longer=longer, shorter=shorter) for longer, shorter in by_clock]
    return max(aucs, key=lambda auc: abs(auc - 0.5))


async def _tokens(database: Database, count: int) -> list[str]:
    async with database.transaction() as conn:
        owner = await create_user(conn, f"ada-{random.getrandbits(32):08x}")
        issued = [
            await service.issue(conn, user_id=owner.id, name="leaked", role=TokenRole.read)
            for _ in range(count)
        ]
    return [value for _, value in issued]


def _in_calls(values: list[str]) -> list[list[str]]:
    starts = range(0, len(values), _VALUES_PER_CALL)
    return [values[start : start + _VALUES_PER_CALL] for start in starts]


async def _is_busy(database: Database) -> bool:
    async with database.read() as conn:
        return await work.is_busy(conn)


def mann_whitney_auc(*, longer: Sequence[float], shorter: Sequence[float]) -> float:
    """Return the share of pairs in which the first is longer; a tie is half a pair."""
    ordered = sorted(shorter)
    doubled = sum(bisect_left(ordered, each) + bisect_right(ordered, each) for each in longer)
    return doubled / 2 / (len(longer) * len(shorter))
