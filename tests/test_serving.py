"""The sockets that a hub listens on, and how many processes may serve them."""

import socket
from pathlib import Path

import pytest

from hublet.core.config import load
from hublet.core.startup import CannotStart
from hublet.process_group import check_processes
from hublet.serving import listen, port_of


def addresses_of(listeners: list[socket.socket]) -> list[str]:
    return [listener.getsockname()[0] for listener in listeners]


def close(listeners: list[socket.socket]) -> None:
    for listener in listeners:
        listener.close()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="This machine has no IPv6.")
def test_a_local_hub_is_found_as_localhost_by_both_protocols() -> None:
    listeners = listen("127.0.0.1", 0)

    assert addresses_of(listeners) == ["127.0.0.1", "::1"]
    assert {listener.getsockname()[1] for listener in listeners} == {port_of(listeners)}
    close(listeners)


def test_without_room_on_the_second_address_the_first_is_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hublet.serving.LOCAL_IPV6", "192.0.2.1")

    listeners = listen("127.0.0.1", 0)

    assert addresses_of(listeners) == ["127.0.0.1"]
    close(listeners)


def test_an_address_that_is_taken_is_refused_with_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotStart, match=rf"127\.0\.0\.1:{port} cannot be used"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        pytest.param({}, "2 processes need PostgreSQL", id="not on SQLite"),
        pytest.param({"server.role": "worker"}, "A worker is one process", id="not of a worker"),
        pytest.param(
            {"database.url": "postgresql://db/hub", "server.test_mode": True},
            "Test mode has one process",
            id="not in test mode",
        ),
    ],
)
def test_several_processes_are_refused_with_a_sentence(
    given: dict[str, object], sentence: str, tmp_path: Path
) -> None:
    base = {"database.data_dir": tmp_path, "server.processes": 2}

    with pytest.raises(CannotStart, match=sentence):
        check_processes(load({**base, **given}, environ={}))


def test_several_processes_serve_a_hub_on_postgresql(tmp_path: Path) -> None:
    given = {"database.data_dir": tmp_path, "database.url": "postgresql://db/hub"}

    check_processes(load({**given, "server.processes": "auto"}, environ={}))
    check_processes(load({**given, "server.processes": 2, "server.role": "api"}, environ={}))
