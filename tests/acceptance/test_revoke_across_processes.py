"""A credential that is revoked in one process fails in every other.

Within a second, because no process remembers a caller longer (tokens.cache_seconds).
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import pytest

from cluster import wanted_nodes
from hublet.accounts.users.service import disable_user
from hublet.core.database import Connection
from hublet.core.startup import open_hub
from hublet.tokens import service as tokens
from patience import SOON_SECONDS
from people import a_token, a_user
from processes import Place, Process, Server, serving, started, wait_until

NODES = wanted_nodes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """On PostgreSQL two servers; on SQLite one, which is then both."""

    place: Place
    here: Server
    there: Server


@pytest.fixture(scope="module")
def hub(shared_place: Place) -> Iterator[Hub]:
    with ExitStack() as stack:
        here = stack.enter_context(serving(shared_place, "--test-mode"))
        several = shared_place.database_url is not None
        there = stack.enter_context(serving(shared_place, "--test-mode")) if several else here
        yield Hub(place=shared_place, here=here, there=there)


@dataclass(slots=True)
class Calls:
    """The statuses of one call after the other with the same token."""

    statuses: list[int] = field(default_factory=list)

    def have_failed(self) -> bool:
        """Tell whether it fails now, at each node where a balancer alternates."""
        return set(self.statuses[-NODES:]) == {401}


@contextmanager
def calling(server: Server, token: str) -> Iterator[Calls]:
    """Ask who the token belongs to, without a pause, until the end."""
    calls, stop = Calls(), threading.Event()

    def call() -> None:
        with server.client(token) as client:
            while not stop.is_set():
                calls.statuses.append(client.get("/api/whoami-v2").status_code)

    caller = threading.Thread(target=call)
    caller.start()
    try:
        wait_until(lambda: len(calls.statuses) > 10, seconds=SOON_SECONDS)
        yield calls
    finally:
        stop.set()
        caller.join()


def assert_revoked_everywhere(hub: Hub, token: str, revoke: Callable[[], None]) -> None:
    """The token works at the other server until it is revoked, and never again."""
    with calling(hub.there, token) as calls:
        assert not calls.have_failed()
        revoke()
        wait_until(calls.have_failed, seconds=SOON_SECONDS)
        # Long enough for a remembered caller to come back, if one could.
        time.sleep(0.6)

    first_failure = calls.statuses.index(401)
    assert set(calls.statuses[:first_failure]) == {200}
    # Each node hears of it at a moment of its own, and then it is over there.
    for node in range(NODES):
        seen = calls.statuses[node::NODES]
        assert set(seen[seen.index(401) :]) == {401}


@asynccontextmanager
async def _changing(hub: Hub) -> AsyncIterator[Connection]:
    async with open_hub(hub.place.settings) as database, database.transaction() as conn:
        yield conn


def _a_token(hub: Hub, user: str) -> str:
    async def create() -> str:
        async with open_hub(hub.place.settings) as database:
            return await a_token(database, user)

    return asyncio.run(create())


def test_a_token_reported_at_one_server_fails_at_the_other(hub: Hub) -> None:
    token = _a_token(hub, "ada")

    def report() -> None:
        with hub.here.client() as client:
            answer = client.post("/api/credentials/revoke", json={"credentials": [token]})
        assert (answer.status_code, answer.json()) == (202, {})

    assert_revoked_everywhere(hub, token, report)


def test_a_token_reported_by_another_program_fails_at_a_server(hub: Hub) -> None:
    token = _a_token(hub, "ada")

    async def report() -> None:
        async with _changing(hub) as conn:
            await tokens.report(conn, [token], address="192.0.2.7")

    assert_revoked_everywhere(hub, token, lambda: asyncio.run(report()))


def test_a_token_revoked_by_another_program_fails_at_a_server(hub: Hub) -> None:
    value = _a_token(hub, "ada")

    async def revoke() -> None:
        async with _changing(hub) as conn:
            caller = await tokens.find_caller(conn, value)
            assert caller is not None
            await tokens.revoke(
                conn, token_id=caller.token.id, user_id=caller.user_id, reason="administrator"
            )

    assert_revoked_everywhere(hub, value, lambda: asyncio.run(revoke()))


def test_a_user_disabled_by_another_program_is_refused_at_a_server(hub: Hub) -> None:
    token = _a_token(hub, "grace")

    async def disable() -> None:
        async with open_hub(hub.place.settings) as database:
            grace = await a_user(database, "grace")
            async with database.transaction() as conn:
                await disable_user(conn, grace)

    assert_revoked_everywhere(hub, token, lambda: asyncio.run(disable()))


def test_servers_that_start_together_make_one_administrator(
    fresh_url: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = Place(folder=tmp_path_factory.mktemp("hub"), database_url=fresh_url())
    flags = ("serve", "--port", "0", "--json")
    with started(place, *flags) as one, started(place, *flags) as other:
        told = [_keys_of(one), _keys_of(other)]

    assert sorted(told, key=len) == [{"address"}, {"address", "user", "firstAdministrator"}]


def _keys_of(process: Process) -> set[str]:
    return set(process.told())
