"""The sockets that a hub listens on."""

import socket

import pytest

from hublet.core.startup import CannotStart
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
