"""Which connections the guard closes, on a clock that tests move; nothing here waits for time."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hublet.core.config import ServerSettings
from hublet.core.http import connection_guard, server_protocol
from hublet.core.http.connection_guard import ConnectionGuard, Phase
from hublet.core.http.request_bodies import Buffer, RequestBody
from hublet.core.http.server_protocol import find_connection
from hublet.serving import server_config
from patience import SOON_SECONDS

SETTINGS = ServerSettings(
    header_seconds=20, stall_seconds=60, body_bytes_per_second=100, keep_alive_seconds=3600
)
HEAD = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


class MovedClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MovedClock:
    moved = MovedClock()
    monkeypatch.setattr(connection_guard, "monotonic", moved)
    monkeypatch.setattr(server_protocol, "monotonic", moved)
    return moved


@dataclass(slots=True)
class Hub:
    """A server, its application, and the clock of both."""

    clock: MovedClock
    guard: ConnectionGuard
    address: tuple[str, int]
    received: int = 0
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/stream":
            await self._stream(send)
        elif scope["path"] == "/taken":
            connection = find_connection(scope)
            assert connection is not None
            taken = connection.take_over()
            assert taken is not None
            await self.go_on.wait()
            taken[0].write(b"still there")
            taken[0].close()
        elif scope["path"] == "/file":
            body = RequestBody(Request(scope, receive), broken=ClientDisconnect)
            with suppress(ClientDisconnect):
                assert await body.copy_to(self._write, most=1 << 30)
                await Response(b"written")(scope, receive, send)
        elif scope["path"] == "/early":
            await Response(b"no")(scope, receive, send)
        else:
            await self._read(scope, receive, send)

    def _write(self, data: Buffer) -> None:
        self.received += len(data)

    async def _stream(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await self.go_on.wait()
        await send({"type": "http.response.body", "body": b"last"})

    async def _read(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/slow-is-fine" and (connection := find_connection(scope)):
            connection.allow_slow_body()
        if scope["path"] == "/busy":
            await self.go_on.wait()
        try:
            async for piece in Request(scope, receive).stream():
                self.received += len(piece)
        except ClientDisconnect:
            return
        await Response(b"read")(scope, receive, send)

    def pass_time(self, seconds: float) -> None:
        """Move the clock, and let the guard look as often as it needs to."""
        self.clock.now += seconds
        self.guard.sweep()
        self.guard.sweep()

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(SOON_SECONDS):
            while not is_so():
                await asyncio.sleep(0.005)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        before = len(self.guard._connections)  # noqa: SLF001 - what a test may look at.
        streams = await self.knock()
        await self.until(lambda: len(self.guard._connections) > before)  # noqa: SLF001
        return streams

    async def knock(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect, whether or not the guard lets it in."""
        reader, writer = await asyncio.open_connection(*self.address)
        self.writers.append(writer)
        return reader, writer

    @property
    def phases(self) -> list[Phase]:
        return [each.clock.phase for each in self.guard._connections]  # noqa: SLF001


@pytest.fixture
async def hub(clock: MovedClock) -> AsyncIterator[Hub]:
    async with served(clock, SETTINGS) as hub:
        yield hub


@asynccontextmanager
async def served(clock: MovedClock, settings: ServerSettings) -> AsyncIterator[Hub]:
    listener = socket.create_server(("127.0.0.1", 0))
    made: list[Hub] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await made[0].app(scope, receive, send)

    config = server_config(app, settings)
    config.load()
    guard = config.http_protocol_class.keywords["guard"]  # type: ignore[attr-defined]
    # It looks when a test says so, and at no other time.
    guard._pause = 3600.0  # noqa: SLF001 - as above.
    made.append(Hub(clock=clock, guard=guard, address=listener.getsockname()))
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    try:
        async with asyncio.timeout(SOON_SECONDS):
            yield made[0]
    finally:
        made[0].go_on.set()
        for writer in made[0].writers:
            writer.close()
        await server.shutdown(sockets=[listener])


async def refusal(reader: asyncio.StreamReader) -> tuple[int, str]:
    """Return the status and the sentence of a response after which the connection is closed."""
    async with asyncio.timeout(SOON_SECONDS):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    assert b"connection: close" in head.split(b"\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


def upload(path: str, size: int, *lines: str) -> bytes:
    first = [f"POST {path} HTTP/1.1", "host: x", f"content-length: {size}"]
    return "\r\n".join([*first, *lines, "", ""]).encode()


async def test_a_silent_connection_is_closed_when_a_head_is_overdue(hub: Hub) -> None:
    reader, _ = await hub.connect()
    hub.pass_time(19)
    assert hub.phases == [Phase.head]
    hub.pass_time(2)

    assert await reader.read() == b""


@pytest.mark.parametrize("behind", [b"", HEAD], ids=["the first", "a later one"])
async def test_a_head_that_takes_too_long_is_refused(hub: Hub, behind: bytes) -> None:
    reader, writer = await hub.connect()
    if behind:
        writer.write(behind)
        await reader.readuntil(b"read")
    writer.write(b"GET / HTTP/1.1\r\n")
    # However often something of it comes.
    for count in range(1, 5):
        writer.write(b"x-some: header\r\n")
        parsed = 16 * (count + 1)
        await hub.until(lambda: fruitless(hub) >= parsed)  # noqa: B023 - called at once.
        hub.pass_time(5)
    hub.pass_time(1)

    assert await refusal(reader) == (408, "The head of the request took too long to arrive.")


def fruitless(hub: Hub) -> int:
    [connection] = hub.guard._connections  # noqa: SLF001
    assert isinstance(connection, server_protocol.ServerProtocol)
    return connection._fruitless  # noqa: SLF001


async def test_an_empty_line_after_a_response_is_no_way_to_stay(hub: Hub) -> None:
    reader, writer = await hub.connect()
    writer.write(HEAD)
    await reader.readuntil(b"read")
    writer.write(b"\r\n")
    await hub.until(lambda: hub.phases == [Phase.head])
    hub.pass_time(21)

    await refusal(reader)


async def test_a_body_below_the_least_rate_is_refused(hub: Hub) -> None:
    reader, writer = await hub.connect()
    writer.write(upload("/", 10_000))
    for count in range(1, 8):
        writer.write(b"a" * 90)
        await hub.until(lambda: hub.received == 90 * count)  # noqa: B023 - called at once.
        hub.pass_time(10)

    assert await refusal(reader) == (408, "The body of the request arrives too slowly.")


async def test_a_body_above_the_least_rate_may_take_minutes(hub: Hub) -> None:
    reader, writer = await hub.connect()
    writer.write(upload("/", 1100 * 60))
    for count in range(1, 61):
        writer.write(b"a" * 1100)
        await hub.until(lambda: hub.received == 1100 * count)  # noqa: B023 - called at once.
        hub.pass_time(10)

    assert (await reader.readuntil(b"read")).startswith(b"HTTP/1.1 200 ")


async def test_a_body_may_stall_now_and_then_but_a_fast_start_is_no_credit(hub: Hub) -> None:
    reader, writer = await hub.connect()
    writer.write(upload("/", 10**6))
    for size in (50_000, 50_000):
        writer.write(b"a" * size)
        expected = hub.received + size
        await hub.until(lambda: hub.received == expected)  # noqa: B023 - called at once.
        hub.pass_time(59)
    assert hub.phases == [Phase.body]
    hub.pass_time(2)

    assert (await refusal(reader))[0] == 408


async def send_to_a_file(hub: Hub, writer: asyncio.StreamWriter, size: int) -> None:
    """Send less than is worth a call in a thread; it is taken when the guard asks for it."""
    expected = hub.received + size
    writer.write(b"a" * size)

    def has_come() -> bool:
        is_held_up = any(each.is_held_up() for each in hub.guard._connections)  # noqa: SLF001
        return hub.received == expected and not is_held_up

    await hub.until(has_come)


async def test_a_body_that_goes_to_a_file_has_the_least_rate_too(hub: Hub) -> None:
    reader, writer = await hub.connect()
    writer.write(upload("/file", 10**6))
    for _ in range(7):
        await send_to_a_file(hub, writer, 90)
        hub.pass_time(10)

    assert await refusal(reader) == (408, "The body of the request arrives too slowly.")


async def test_a_body_that_goes_to_a_file_may_take_minutes(hub: Hub) -> None:
    reader, writer = await hub.connect()
    writer.write(upload("/file", 300_000))
    for _ in range(30):
        await send_to_a_file(hub, writer, 10_000)
        hub.pass_time(59)

    assert (await reader.readuntil(b"written")).startswith(b"HTTP/1.1 200 ")


async def test_a_body_that_another_server_reads_may_take_its_time(hub: Hub) -> None:
    reader, writer = await hub.connect()
    writer.write(upload("/slow-is-fine", 2) + b"a")
    await hub.until(lambda: hub.received == 1)
    hub.pass_time(86_400)
    writer.write(b"b")

    assert (await reader.readuntil(b"read")).startswith(b"HTTP/1.1 200 ")


async def test_who_waits_to_be_asked_for_the_body_is_not_slow(hub: Hub) -> None:
    reader, writer = await hub.connect()
    writer.write(upload("/busy", 1, "expect: 100-continue"))
    await hub.until(lambda: hub.phases == [Phase.body])
    hub.pass_time(3600)
    hub.go_on.set()
    await reader.readuntil(b"100 Continue\r\n\r\n")
    writer.write(b"a")

    assert (await reader.readuntil(b"read")).startswith(b"HTTP/1.1 200 ")


async def test_a_body_that_the_hub_is_slow_to_read_is_not_slow(hub: Hub) -> None:
    reader, writer = await hub.connect()
    writer.write(upload("/busy", 10**6))
    writer.write(bytes(10**6))
    await hub.until(lambda: all(each.is_held_up() for each in hub.guard._connections))  # noqa: SLF001
    hub.pass_time(3600)
    hub.go_on.set()

    assert (await reader.readuntil(b"read")).startswith(b"HTTP/1.1 200 ")


async def test_a_body_that_goes_on_after_the_response_has_the_same_rate(hub: Hub) -> None:
    reader, writer = await hub.connect()
    writer.write(upload("/early", 10**6) + b"a")
    await reader.readuntil(b"no")
    hub.pass_time(59)
    assert hub.phases == [Phase.body]
    hub.pass_time(2)

    assert await reader.read() == b""


async def test_a_response_may_be_silent_for_as_long_as_it_likes(hub: Hub) -> None:
    reader, writer = await hub.connect()
    writer.write(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n")
    await reader.readuntil(b"first\r\n")
    hub.pass_time(86_400)
    hub.go_on.set()

    await reader.readuntil(b"last\r\n0\r\n\r\n")


async def test_a_connection_that_was_taken_over_is_left_alone(hub: Hub) -> None:
    reader, writer = await hub.connect()
    lines = [b"GET /taken HTTP/1.1", b"host: x", b"connection: upgrade", b"upgrade: websocket"]
    writer.write(b"\r\n".join([*lines, b"", b""]))
    await hub.until(lambda: hub.phases == [Phase.response])
    hub.pass_time(86_400)
    hub.go_on.set()

    assert await reader.read() == b"still there"


async def test_requests_behind_each_other_are_not_slow(hub: Hub) -> None:
    reader, writer = await hub.connect()
    writer.write(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n" + upload("/", 2) + b"a")
    await reader.readuntil(b"first\r\n")
    hub.pass_time(3600)
    hub.go_on.set()
    writer.write(b"b")

    await reader.readuntil(b"read")


async def test_the_oldest_idle_connection_makes_room_for_a_new_one(clock: MovedClock) -> None:
    async with served(clock, replace(SETTINGS, connections_per_address=2)) as hub:
        busy, writer = await hub.connect()
        writer.write(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n")
        await busy.readuntil(b"first\r\n")
        idle, _ = await hub.connect()
        await hub.knock()

        # The busy one is older, and stays.
        assert await idle.read() == b""
        hub.go_on.set()
        await busy.readuntil(b"last\r\n0\r\n\r\n")


async def test_an_address_with_nothing_idle_is_refused(clock: MovedClock) -> None:
    async with served(clock, replace(SETTINGS, connections_per_address=1)) as hub:
        busy, writer = await hub.connect()
        writer.write(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n")
        await busy.readuntil(b"first\r\n")
        for _ in range(2):
            reader, _ = await hub.knock()
            sentence = "An address has at most 1 connections at a time."
            assert await refusal(reader) == (429, sentence)
