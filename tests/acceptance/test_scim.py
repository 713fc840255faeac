"""SCIM as its own judge sees it, and how soon nobody gets in any more."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import Status, check_server

from patience import SOON_SECONDS
from processes import Place, Server, run_hublet, serving, wait_until

_USER = "urn:ietf:params:scim:schemas:core:2.0:User"
_PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """On PostgreSQL two servers; on SQLite one, which is then both."""

    place: Place
    here: Server
    there: Server
    token: str


@pytest.fixture(scope="module")
def hub(shared_place: Place) -> Iterator[Hub]:
    with ExitStack() as stack:
        here = stack.enter_context(serving(shared_place, "--test-mode"))
        several = shared_place.database_url is not None
        there = stack.enter_context(serving(shared_place, "--test-mode")) if several else here
        yield Hub(place=shared_place, here=here, there=there, token=_owner(shared_place))


def _owner(place: Place) -> str:
    """Return the token of somebody who owns an organization on the right plan."""
    for words in (
        ("user", "add", "olga"),
        ("org", "add", "acme", "--plan", "enterprise-plus"),
        ("org", "member", "add", "acme", "olga", "--role", "admin"),
    ):
        done = run_hublet(*words, *place.flags, folder=place.folder)
        assert done.returncode == 0, done.stderr
    return _token(place, "olga")


def _token(place: Place, user: str) -> str:
    words = ("token", "create", user, "--role", "write", *place.flags)
    return run_hublet(*words, folder=place.folder).stdout.strip()


@pytest.mark.parametrize("directory", ["scim", "scim-provisioning"])
def test_the_judge_of_scim_servers_finds_nothing(hub: Hub, directory: str) -> None:
    with hub.here.client(hub.token) as client:
        client.base_url = f"{hub.here.address}/api/organizations/acme/{directory}/v2"
        results = check_server(SyncSCIMClient(client), raise_exceptions=False)

    assert [repr(each) for each in results if each.status is not Status.SUCCESS] == []
    # It looks at users and at groups, at their attributes one by one.
    assert len(results) > 60


@contextmanager
def _calling(server: Server, token: str) -> Iterator[list[int]]:
    """Call with the token without a pause until the end; yield the statuses so far."""
    statuses: list[int] = []
    stop = threading.Event()

    def call() -> None:
        with server.client(token) as client:
            while not stop.is_set():
                statuses.append(client.get("/api/whoami-v2").status_code)

    caller = threading.Thread(target=call)
    caller.start()
    try:
        wait_until(lambda: len(statuses) > 10, seconds=SOON_SECONDS)
        yield statuses
    finally:
        stop.set()
        caller.join()


def test_a_user_who_is_not_active_any_more_is_refused_everywhere(hub: Hub) -> None:
    path = "/api/organizations/acme/scim-provisioning/v2/Users"
    name = f"ada-{hub.here.address.rpartition(':')[2]}-x"
    with hub.here.client(hub.token) as provider:
        created = provider.post(path, json={"schemas": [_USER], "userName": name})
        token = _token(hub.place, name)
        with _calling(hub.there, token) as statuses:
            assert statuses[-1] == 200
            change = {"op": "replace", "value": {"active": False}}
            body = {"schemas": [_PATCH], "Operations": [change]}
            changed = provider.patch(f"{path}/{created.json()['id']}", json=body)
            with hub.here.client(token) as own:
                at_once = own.get("/api/whoami-v2").status_code
            wait_until(lambda: statuses[-1] == 401, seconds=SOON_SECONDS)
            # Long enough for a remembered caller to come back, if one could.
            time.sleep(0.6)

    assert (changed.status_code, changed.json()["active"], at_once) == (200, False, 401)
    first_failure = statuses.index(401)
    assert set(statuses[:first_failure]) == {200}
    assert set(statuses[first_failure:]) == {401}


def test_an_open_stream_of_a_user_who_is_not_active_any_more_ends(hub: Hub) -> None:
    path = "/api/organizations/acme/scim-provisioning/v2/Users"
    name = f"bob-{hub.here.address.rpartition(':')[2]}-x"
    with hub.here.client(hub.token) as provider, ExitStack() as stack:
        created = provider.post(path, json={"schemas": [_USER], "userName": name})
        client = stack.enter_context(hub.there.client(_token(hub.place, name)))
        stream = stack.enter_context(client.stream("GET", "/api/notifications/stream"))
        lines = stream.iter_lines()
        assert next(lines) == ": listening"
        change = {"op": "replace", "value": {"active": False}}
        body = {"schemas": [_PATCH], "Operations": [change]}
        provider.patch(f"{path}/{created.json()['id']}", json=body)
        deadline = time.monotonic() + SOON_SECONDS
        for _ in lines:
            assert time.monotonic() < deadline, "The stream goes on."
