"""A hub that is asked to stop in the middle of a request, and started again."""

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from patience import SOON_SECONDS
from processes import STOP_SECONDS, Place, Server, serving, wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarted:
    """Two starts of one hub; between them a request was in flight that revoked a token."""

    first: Server
    second: Server
    answer: bytes
    revoked_token: str


def _address(server: Server) -> tuple[str, int]:
    host, _, port = server.address.removeprefix("http://").partition(":")
    return host, int(port)


def _begin_to_revoke(server: Server, body: bytes) -> socket.socket:
    """Send a request all but the end of its body, and see that the server works on it."""
    connection = socket.create_connection(_address(server), timeout=STOP_SECONDS)
    connection.sendall(
        b"POST /api/credentials/revoke HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\n"
        b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    assert connection.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(body[:-1])
    return connection


def _refuses_connections(server: Server) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(_address(server)) != 0


def _stop_amid_a_request(server: Server, body: bytes) -> bytes:
    """Return the answer to a request that was finished only after the stop had begun."""
    with _begin_to_revoke(server, body) as connection:
        server.process.popen.terminate()
        wait_until(lambda: _refuses_connections(server), seconds=STOP_SECONDS)
        connection.sendall(body[-1:])
        # The head and the body may come apart; a server that stops closes the connection.
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert server.process.popen.wait(STOP_SECONDS) == 0
    return answer


def _new_token(server: Server) -> str:
    with server.client(server.token) as client:
        answer = client.post("/api/settings/tokens", json={"name": "soon revoked"})
    value: str = answer.json()["value"]
    return value


@pytest.fixture(scope="module")
def restarted(shared_place: Place) -> Iterator[Restarted]:
    # Alone: a balancer takes connections also when its node has gone.
    with serving(shared_place, alone=True) as first:
        token = _new_token(first)
        answer = _stop_amid_a_request(first, json.dumps({"credentials": [token]}).encode())
    with serving(shared_place, alone=True) as second:
        yield Restarted(first=first, second=second, answer=answer, revoked_token=token)


def _status_of_whoami(server: Server, token: str | None) -> int:
    with server.client(token) as client:
        return client.get("/api/whoami-v2").status_code


def test_a_request_in_flight_is_answered_before_the_stop(restarted: Restarted) -> None:
    head, _, body = restarted.answer.partition(b"\r\n\r\n")

    assert (head.splitlines()[0], body) == (b"HTTP/1.1 202 Accepted", b"{}")


def test_what_was_answered_before_the_stop_has_its_effect(restarted: Restarted) -> None:
    wait_until(
        lambda: _status_of_whoami(restarted.second, restarted.revoked_token) == 401,
        seconds=SOON_SECONDS,
    )


def test_the_old_token_works_after_the_second_start(restarted: Restarted) -> None:
    assert _status_of_whoami(restarted.second, restarted.first.token) == 200


def test_the_second_start_tells_no_secret(restarted: Restarted) -> None:
    first, second = restarted.first, restarted.second
    assert (second.user, second.password, second.token) == (None, None, None)

    said = second.process.stdout.read_text() + second.process.stderr.read_text()
    assert [secret for secret in (first.password, first.token) if str(secret) in said] == []


def test_a_request_that_never_ends_holds_the_stop_up_no_longer_than_the_grace_time(
    tmp_path: Path,
) -> None:
    grace = {"HUBLET_SERVER_STOP_GRACE_SECONDS": "1"}
    with (
        serving(Place(folder=tmp_path), variables=grace) as server,
        _begin_to_revoke(server, b'{"credentials": ["hf_unknown"]}'),
    ):
        server.process.stop()
