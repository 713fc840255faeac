"""Attacks by connections that are slow, silent or many, on a real process of a hub."""

import json
import resource
import socket
import sys
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

import httpx2
import pytest

from patience import SOON_SECONDS
from processes import HUBLET, Place, Server, serving, wait_until

# Small enough that nobody waits for long, and nothing below depends on how long it takes.
QUICK = {
    "HUBLET_SERVER_HEADER_SECONDS": "0.4",
    "HUBLET_SERVER_STALL_SECONDS": "0.4",
    "HUBLET_SERVER_KEEP_ALIVE_SECONDS": "0.4",
}
# Starts the hub with at most so many open files.
LIMITED = (
    sys.executable,
    "-c",
    """import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
os.execv(sys.argv[1], sys.argv[1:])""",
    *HUBLET,
)
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
HEALTHY = b'{"status":"ok"}'
# More than the hub has threads.
SLOW_PUSHES = 12


@dataclass(frozen=True, slots=True)
class Hub:
    server: Server
    address: tuple[str, int]

    @contextmanager
    def connected(self) -> Iterator[socket.socket]:
        with socket.create_connection(self.address, timeout=SOON_SECONDS) as made:
            yield made

    def is_healthy(self) -> bool:
        with self.connected() as made:
            made.sendall(HEALTH)
            return read_until(made, HEALTHY).startswith(b"HTTP/1.1 200 ")


@contextmanager
def a_hub(folder: Path, **options: object) -> Iterator[Hub]:
    with serving(Place(folder=folder), **options) as server:  # type: ignore[arg-type]
        parts = urlsplit(server.address)
        assert parts.hostname
        assert parts.port
        yield Hub(server, (parts.hostname, parts.port))


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with a_hub(tmp_path_factory.mktemp("hub"), variables=QUICK) as hub:
        yield hub


def read_until(made: socket.socket, end: bytes) -> bytes:
    read = b""
    while not read.endswith(end):
        piece = made.recv(65536)
        assert piece, f"It was closed after {read!r}."
        read += piece
    return read


def rest_of(made: socket.socket) -> bytes:
    """Return all that comes until the hub closes the connection."""
    read = b""
    while piece := made.recv(65536):
        read += piece
    return read


def upload(path: str, token: str | None, size: int) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: x", f"content-length: {size}"]
    lines += ["content-type: application/json", f"authorization: Bearer {token}", "", ""]
    return "\r\n".join(lines).encode()


def conversation(hub: Hub, sent: bytes) -> bytes:
    """Say something at once, and return all that comes until the hub closes the connection.

    Where this process was so slow that it said nothing in time, it tries again.
    """
    deadline = monotonic() + SOON_SECONDS
    while monotonic() < deadline:
        with hub.connected() as made, suppress(ConnectionError):
            made.sendall(sent)
            if read := rest_of(made):
                return read
    raise AssertionError("The hub never had the time to read it.")


def test_who_says_nothing_is_closed(hub: Hub) -> None:
    with hub.connected() as made:
        assert rest_of(made) == b""


def test_half_a_head_is_closed_with_a_sentence(hub: Hub) -> None:
    head, _, body = conversation(hub, b"GET / HTTP/1.1\r\nx-half:").partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 408 ")
    assert json.loads(body) == {"error": "The head of the request took too long to arrive."}


def test_who_is_idle_after_a_response_is_closed(hub: Hub) -> None:
    assert conversation(hub, HEALTH).endswith(HEALTHY)


def test_a_body_that_stalls_is_closed_with_a_sentence(hub: Hub) -> None:
    sent = upload("/api/repos/create", hub.server.token, 1000) + b"{"
    head, _, body = conversation(hub, sent).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 408 ")
    assert json.loads(body) == {"error": "The body of the request arrives too slowly."}


def test_many_slow_pushes_are_closed_and_keep_what_came(hub: Hub) -> None:
    login = b64encode(f"{hub.server.user}:{hub.server.token}".encode()).decode()
    headers = {"Authorization": f"Basic {login}"}

    def push_slowly(session: str) -> bytes:
        lines = [f"PATCH {session} HTTP/1.1", "host: x", f"content-length: {1 << 30}"]
        lines += [f"authorization: Basic {login}", "", "a little"]
        return conversation(hub, "\r\n".join(lines).encode())

    with hub.server.client() as client, ThreadPoolExecutor(SLOW_PUSHES) as pool:
        beginning = f"/v2/{hub.server.user}/slow/blobs/uploads/"
        begun = [client.post(beginning, headers=headers) for _ in range(SLOW_PUSHES)]
        sessions = [each.headers["Location"] for each in begun]
        answers = pool.map(push_slowly, sessions)
        assert hub.is_healthy()
        assert all(answer.startswith(b"HTTP/1.1 408 ") for answer in answers)
        for session in sessions:
            wait_until(lambda: is_begun(client, session, headers), seconds=SOON_SECONDS)  # noqa: B023 - called at once


def is_begun(client: httpx2.Client, session: str, headers: dict[str, str]) -> bool:
    return client.get(session, headers=headers).headers["Range"] != "0-0"


def test_a_stream_of_events_outlives_those_who_are_silent(hub: Hub) -> None:
    with a_stream(hub) as stream:
        for _ in range(3):
            with hub.connected() as silent:
                assert rest_of(silent) == b""
        stream.setblocking(False)
        assert not is_at_its_end(stream)


@contextmanager
def a_stream(hub: Hub) -> Iterator[socket.socket]:
    lines = ["GET /api/notifications/stream HTTP/1.1", "host: x", "accept: text/event-stream"]
    lines += [f"authorization: Bearer {hub.server.token}", "", ""]
    with ExitStack() as stack:
        stream, begun = None, b""
        while stream is None or not begun:
            stream = stack.enter_context(hub.connected())
            with suppress(ConnectionError):
                stream.sendall("\r\n".join(lines).encode())
                begun = stream.recv(65536)
        assert begun.startswith(b"HTTP/1.1 200 ")
        yield stream


def is_at_its_end(stream: socket.socket) -> bool:
    """Tell whether a connection is closed, once all that came over it is read."""
    try:
        while stream.recv(65536):
            pass
    except BlockingIOError:
        return False
    return True


@contextmanager
def many_silent(hub: Hub, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(hub.connected()) for _ in range(count)]


@pytest.fixture
def many_open_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip(f"This test needs 4,096 open files, and may have {hard}.")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_open_files")
def test_more_silent_connections_than_open_files_leave_the_hub_healthy(tmp_path: Path) -> None:
    patient = {"HUBLET_SERVER_HEADER_SECONDS": "3600"}
    unlimited = patient | {"HUBLET_SERVER_CONNECTIONS_PER_ADDRESS": "1000000"}
    with a_hub(tmp_path, variables=unlimited, program=LIMITED) as hub:
        with many_silent(hub, 1100) as silent:
            assert hub.is_healthy()
            # The oldest made room, and the newest is still welcome.
            assert is_closed(silent[0])
            silent[-1].sendall(HEALTH)
            read_until(silent[-1], HEALTHY)
        said = hub.server.process.stderr.read_text()

    assert "the reserve of open files is reached" in said
    assert "Too many open files" not in said


def is_closed(made: socket.socket) -> bool:
    try:
        return made.recv(1) == b""
    except ConnectionResetError:
        return True


def test_an_address_has_a_limit(tmp_path: Path) -> None:
    few = {"HUBLET_SERVER_CONNECTIONS_PER_ADDRESS": "5", "HUBLET_SERVER_HEADER_SECONDS": "3600"}
    with a_hub(tmp_path, variables=few) as hub, many_silent(hub, 6) as silent:
        assert is_closed(silent[0])
        assert hub.is_healthy()
