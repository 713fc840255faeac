"""Which connections the guard lets in: how many of an address, and how many in all."""

from dataclasses import dataclass, replace
from ipaddress import ip_network
from typing import Any

import pytest

from hublet.core.config import ServerSettings
from hublet.core.http import connection_guard
from hublet.core.http.connection_guard import (
    ClientClock,
    ConnectionGuard,
    NoRoom,
    TooManyConnections,
)

SETTINGS = ServerSettings()


@dataclass(slots=True, eq=False)
class FakeConnection:
    """A connection without a socket."""

    client: tuple[str, int] | None
    clock: ClientClock
    is_evicted: bool = False

    def is_held_up(self) -> bool:
        return False

    def cut(self) -> None:
        raise AssertionError("Nothing is late here.")

    def evict(self) -> None:
        self.is_evicted = True


def a_guard(**options: Any) -> ConnectionGuard:
    return ConnectionGuard(replace(SETTINGS, **options))


def a_connection(address: str = "203.0.113.7", *, is_busy: bool = False) -> FakeConnection:
    made = FakeConnection(client=(address, 50_000), clock=ClientClock(SETTINGS, 0.0))
    if is_busy:
        made.clock.stop()
    return made


async def test_each_address_has_connections_of_its_own() -> None:
    guard = a_guard(connections_per_address=1)
    guard.admit(a_connection("203.0.113.7", is_busy=True), descriptor=5)
    guard.admit(a_connection("203.0.113.8", is_busy=True), descriptor=6)

    with pytest.raises(TooManyConnections):
        guard.admit(a_connection("203.0.113.8"), descriptor=7)


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        pytest.param("2001:db8::1", "2001:db8::2", True, id="of one network"),
        pytest.param("2001:db8::1", "2001:db8:0:1::1", False, id="of two networks"),
        pytest.param("::ffff:203.0.113.7", "::ffff:203.0.113.8", False, id="IPv4 in IPv6"),
        pytest.param("::ffff:203.0.113.7", "203.0.113.7", True, id="one in two spellings"),
        pytest.param("fe80::1%eth0", "fe80::2%eth0", True, id="with a zone"),
    ],
)
async def test_ipv6_counts_by_network(*, first: str, second: str, is_same: bool) -> None:
    guard = a_guard(connections_per_address=1)
    guard.admit(a_connection(first, is_busy=True), descriptor=5)
    try:
        guard.admit(a_connection(second), descriptor=6)
    except TooManyConnections:
        assert is_same
    else:
        assert not is_same


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"trusted_proxies": (ip_network("203.0.113.0/24"),)}, id="a trusted proxy"),
        pytest.param({"test_mode": True}, id="test mode"),
    ],
)
async def test_some_have_no_limit_for_an_address(options: dict[str, Any]) -> None:
    guard = a_guard(connections_per_address=1, **options)
    for descriptor in range(5, 10):
        guard.admit(a_connection(is_busy=True), descriptor=descriptor)


async def test_another_address_beside_a_trusted_proxy_has_a_limit() -> None:
    guard = a_guard(connections_per_address=1, trusted_proxies=(ip_network("10.0.0.5/32"),))
    guard.admit(a_connection(is_busy=True), descriptor=5)
    with pytest.raises(TooManyConnections):
        guard.admit(a_connection(), descriptor=6)


async def test_a_closed_connection_counts_no_more() -> None:
    guard = a_guard(connections_per_address=1)
    guard.admit(first := a_connection(is_busy=True), descriptor=5)
    guard.release(first)
    guard.admit(a_connection(), descriptor=5)


async def test_the_reserve_is_kept_by_closing_the_oldest_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_guard, "_descriptors", lambda: (100, 75))
    guard = a_guard()
    those = [a_connection() for _ in range(20)]
    for age, each in enumerate(those):
        each.clock.since = float(age)
        guard.admit(each, descriptor=10 + age)
    guard.admit(a_connection(), descriptor=75)

    # More than one at a time, so that not every new one costs a search.
    assert [each.is_evicted for each in those] == [True, True, *[False] * 18]


async def test_with_nothing_idle_the_reserve_is_kept_by_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_guard, "_descriptors", lambda: (100, 75))
    told: list[str] = []
    monkeypatch.setattr(connection_guard.log, "warning", lambda event, **_: told.append(event))
    guard = a_guard()
    guard.admit(a_connection(is_busy=True), descriptor=74)
    for _ in range(3):
        with pytest.raises(NoRoom):
            guard.admit(a_connection(), descriptor=75)

    assert told == [
        "the reserve of open files is reached: idle connections are closed, then new ones"
    ]


@pytest.mark.parametrize(
    ("limit", "first_reserved"),
    [(1024, 768), (256, 192), (1_048_576, 1_048_064)],
)
def test_a_quarter_of_the_open_files_is_reserved(
    limit: int, first_reserved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_guard.resource, "getrlimit", lambda _: (limit, limit))
    assert connection_guard._descriptors() == (limit, first_reserved)  # noqa: SLF001
