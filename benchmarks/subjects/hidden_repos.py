"""What the time of a response tells of a name: is there a private repository, or none?

A stranger asks for private repositories and for names that nothing has, in random order, one call
after the other. The AUC, its bound and the two clocks are those of `revoke`. A hub that looks for
the repository first and for the right to it afterwards must be seen as one that leaks.
"""

import random
import time
from collections.abc import Iterator
from unittest.mock import patch

import httpx2

from benchmarks.figures import Goal, Row
from benchmarks.hubs import ENGINES, a_token
from benchmarks.subjects.revoke import calling, mann_whitney_auc
from benchmarks.workbench import Workbench
from hublet.accounts.users.service import create_user
from hublet.cli.local_hub import run_loop
from hublet.core.config import Settings
from hublet.core.database import Database, Reader
from hublet.repos import service, store
from hublet.repos.errors import RepoNotFound
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.tokens import service as tokens
from hublet.tokens.records import Caller, TokenRole

# Of each kind: chance alone stays within 0.02 in 998 of 1,000 runs.
_CALLS = 4000
_FEWEST_CALLS = 20
_WARM_UP_CALLS = 50
_REPOS = 20
_BOUND = 0.02
_CLOCKS = (time.perf_counter_ns, time.process_time_ns)

_get = service.get


def measure(bench: Workbench) -> Iterator[Row]:
    """What the time of a 404 tells of a private repository."""
    calls = max(_FEWEST_CALLS, round(_CALLS * bench.share))
    for engine in ENGINES:
        settings = bench.site(engine).settings(server__test_mode=True)
        yield from run_loop(_rows(settings, engine, calls=calls))


async def _rows(settings: Settings, engine: str, *, calls: int) -> list[Row]:
    async with calling(settings) as (client, database):
        owner, stranger = await a_token(database), await _stranger(database)
        for number in range(_REPOS):
            body = {"name": f"hidden-{number:02}", "private": True}
            created = await client.post("/api/repos/create", json=body, headers=_bearer(owner))
            assert created.status_code == 200, created.text
        client.headers.update(_bearer(stranger))
        told = abs(await _auc(client, calls=calls) - 0.5)
        with patch.object(service, "get", _get_after_a_look):
            leak = await _auc(client, calls=calls) - 0.5
    return [
        Row(
            subject=f"hidden repos: what time tells of a private repository, {engine}",
            unit="",
            ours=told,
            goal=Goal(floor=_BOUND, more_is_better=False, of="ours"),
            note=f"distance of the AUC from 0.5, {calls} calls of each kind",
        ),
        Row(
            subject=f"hidden repos: the same with the right looked up afterwards, {engine}",
            unit="",
            ours=leak,
            goal=Goal(floor=_BOUND, more_is_better=True, of="ours"),
            note="the method sees a leak if this is above the floor",
        ),
    ]


async def _get_after_a_look(
    conn: Reader, caller: Caller | None, address: RepoAddress, right: Right
) -> Repo:
    if await store.find_by_name(conn, address) is None:
        raise RepoNotFound(address.type, address.full_name)
    return await _get(conn, caller, address, right)


async def _stranger(database: Database) -> str:
    async with database.transaction() as conn:
        user = await create_user(conn, "eve")
        _, value = await tokens.issue(conn, user_id=user.id, name="eve", role=TokenRole.write)
    return value


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def _auc(client: httpx2.AsyncClient, *, calls: int) -> float:
    """Return how well the time of a call tells a private repository from none."""
    for _ in range(_WARM_UP_CALLS):
        await client.get("/api/models/ada/absent-00")
    kinds = [True, False] * calls
    times: dict[bool, list[list[int]]] = {True: [], False: []}
    for is_private in random.sample(kinds, k=len(kinds)):
        name = f"{'hidden' if is_private else 'absent'}-{random.randrange(_REPOS):02}"
        started_at = [read() for read in _CLOCKS]
        response = await client.get(f"/api/models/ada/{name}")
        times[is_private].append(
            [read() - at for read, at in zip(_CLOCKS, started_at, strict=True)]
        )
        assert response.status_code == 404
    by_clock = zip(zip(*times[True], strict=True), zip(*times[False], strict=True), strict=True)
    aucs = [mann_whitney_auc(longer=longer, shorter=shorter) for longer, shorter in by_clock]
    return max(aucs, key=lambda auc: abs(auc - 0.5))
