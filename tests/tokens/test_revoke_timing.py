"""Whether a credential exists can be told neither from the answer to a report nor from its time.

Method: tokens that work and tokens that were never issued are reported in random order, one
call after the other, to a hub whose worker runs beside it as it does in a server, each after the
work of the one before is done. Two clocks are read: the time that passed, as a caller sees it,
and that which this process worked, on which other work of the machine has little influence. The
AUC of Mann and Whitney is the chance that a call with a real token took longer than one with an
unknown token: 0.5 when time tells nothing, 1 when it tells all. Of n calls of each kind its
standard deviation is sqrt((2n + 1) / 12n²) if time tells nothing, 0.020 for n = 400; four of
them are the bound, which chance breaks once in 16,000 times, and the clock that tells more
counts. The machine is shared with other work, so three tries are allowed. A look-up inside the
call must break the bound on the same machine: the method would see the leak if there was one.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from math import sqrt

import httpx2
import pytest
from fastapi import FastAPI

from hublet.accounts.users import service as accounts
from hublet.app import with_edge
from hublet.core import clock
from hublet.core.config import Settings
from hublet.core.database import Connection, Database
from hublet.tokens import service
from hublet.tokens.format import TokenKind, new_credential
from hublet.tokens.records import TokenRole
from hublet.worker import Worker
from people import a_token, a_user
from workers import drain, work_left

PATH = "/api/credentials/revoke"
CALLS = 400
# What a look-up costs is multiplied, the noise of a call is not.
VALUES_PER_CALL = 3
TRIES = 3
BOUND = 4 * sqrt((2 * CALLS + 1) / (12 * CALLS**2))
CLOCKS = (time.perf_counter_ns, time.process_time_ns)
# These differ from call to call, whatever it holds.
OWN_TO_THE_CALL = {"date", "x-request-id", "ratelimit"}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """The limits count as always, and refuse nobody."""
    return replace(settings, server=replace(settings.server, test_mode=True))


async def _answer(client: httpx2.AsyncClient, values: list[str]) -> tuple[object, ...]:
    response = await client.post(PATH, json={"credentials": values})
    headers = [pair for pair in response.headers.raw if pair[0].decode() not in OWN_TO_THE_CALL]
    return response.status_code, headers, response.content


async def _expired(database: Database, name: str) -> str:
    user = await a_user(database, name)
    soon = clock.now() + timedelta(minutes=1)
    async with database.transaction() as conn:
        _, value = await service.issue(
            conn, user_id=user.id, name="short", role=TokenRole.read, expires_at=soon
        )
    clock.move(timedelta(minutes=2))
    return value


async def _of_a_disabled_user(database: Database, name: str) -> str:
    value = await a_token(database, name)
    user = await a_user(database, name)
    async with database.transaction() as conn:
        await accounts.disable_user(conn, user)
    return value


async def test_the_answer_is_the_same_to_the_byte_whatever_was_reported(
    client: httpx2.AsyncClient, database: Database
) -> None:
    real, revoked = await a_token(database, "ada"), await a_token(database, "ada")
    expected = await _answer(client, [revoked])
    await drain(database)
    reports = {
        "unknown": [new_credential("hf_", TokenKind.access)],
        "malformed": ["no token at all"],
        "not even ASCII": ["ключ"],
        "of another hub": ["ghp_" + "x" * 36],
        "as long as may be": ["x" * 200],
        "already revoked": [revoked],
        "expired": [await _expired(database, "grace")],
        "of a disabled user": [await _of_a_disabled_user(database, "bob")],
        "mixed, and one of them twice": [real, "unknown", revoked, real],
    }

    answers = {name: await _answer(client, values) for name, values in reports.items()}

    assert expected[::2] == (202, b"{}")
    assert answers == dict.fromkeys(reports, expected)


@pytest.fixture
async def caller(app: FastAPI, database: Database) -> AsyncIterator[httpx2.AsyncClient]:
    """Calls a hub whose worker runs, and looks at nothing but the time."""
    worker = Worker(database)
    worker.start()
    transport = httpx2.ASGITransport(app=with_edge(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        yield client
    await worker.stop()


async def _some_tokens(database: Database, count: int) -> list[str]:
    ada = await a_user(database, "ada")
    async with database.transaction() as conn:
        issued = [
            await service.issue(conn, user_id=ada.id, name="leaked", role=TokenRole.read)
            for _ in range(count)
        ]
    return [value for _, value in issued]


async def _auc(caller: httpx2.AsyncClient, database: Database) -> float:
    """Return how well the time of a call tells a real token from an unknown one.

    Of the two clocks it is that which tells more.
    """
    real = await _some_tokens(database, CALLS * VALUES_PER_CALL)
    unknown = [new_credential("hf_", TokenKind.access) for _ in real]
    calls = [(values, True) for values in _in_calls(real)]
    calls += [(values, False) for values in _in_calls(unknown)]
    times: dict[bool, list[list[int]]] = {True: [], False: []}
    for values, is_real in random.sample(calls, k=len(calls)):
        begun = [read() for read in CLOCKS]
        response = await caller.post(PATH, json={"credentials": values})
        times[is_real].append([read() - at for read, at in zip(CLOCKS, begun, strict=True)])
        assert response.status_code == 202
        # What a worker tells owners afterwards would fall on the calls that follow, at random.
        while await work_left(database):
            await asyncio.sleep(0.001)
    by_clock = zip(zip(*times[True], strict=True), zip(*times[False], strict=True), strict=True)
    aucs = [mann_whitney_auc(longer=longer, shorter=shorter) for longer, shorter in by_clock]
    return max(aucs, key=lambda auc: abs(auc - 0.5))


def _in_calls(values: list[str]) -> list[list[str]]:
    starts = range(0, len(values), VALUES_PER_CALL)
    return [values[start : start + VALUES_PER_CALL] for start in starts]


def mann_whitney_auc(*, longer: Sequence[float], shorter: Sequence[float]) -> float:
    """Return the share of pairs in which the first is longer; a tie is half a pair."""
    pairs = [(a > b) + (a == b) / 2 for a in longer for b in shorter]
    return sum(pairs) / len(pairs)


async def test_the_time_does_not_tell_a_real_token_from_an_unknown_one(
    caller: httpx2.AsyncClient, database: Database
) -> None:
    seen: list[float] = []
    while len(seen) < TRIES and not (seen and abs(seen[-1] - 0.5) <= BOUND):
        seen.append(await _auc(caller, database))

    assert abs(seen[-1] - 0.5) <= BOUND, seen


async def test_a_look_up_inside_the_call_would_be_seen(
    caller: httpx2.AsyncClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def report_at_once(conn: Connection, values: Sequence[str], *, address: str) -> None:
        digests = [
            digest for value in values for digest in service.digests_of(conn.hub.keys, value)
        ]
        reported = service.ReportedCredentials(digests=digests, address=address)
        await service.revoke_reported(conn, reported)

    monkeypatch.setattr(service, "report", report_at_once)
    seen: list[float] = []
    while len(seen) < TRIES and not (seen and seen[-1] - 0.5 > BOUND):
        seen.append(await _auc(caller, database))

    assert seen[-1] - 0.5 > BOUND, seen


@pytest.mark.parametrize(
    ("longer", "shorter", "auc"),
    [
        pytest.param([3, 4], [1, 2], 1.0, id="always longer"),
        pytest.param([1, 2], [3, 4], 0.0, id="always shorter"),
        pytest.param([1, 4], [2, 3], 0.5, id="as often longer as shorter"),
        pytest.param([5], [5], 0.5, id="a tie"),
    ],
)
def test_the_auc_counts_pairs(longer: list[float], shorter: list[float], auc: float) -> None:
    assert mann_whitney_auc(longer=longer, shorter=shorter) == auc
