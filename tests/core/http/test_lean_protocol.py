"""What leaves the server, byte for byte: heads, whole responses, and when a connection ends."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast
from unittest.mock import Mock, call

import pytest
import uvicorn
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl

from hublet.app import with_edge
from hublet.core import lean_protocol
from hublet.core.config import ServerSettings, Settings
from hublet.core.database import Database, DatabaseUnavailable
from hublet.core.http import edge
from hublet.core.lean_protocol import LeanCycle
from hublet.serving import server_config
from patience import SOON_SECONDS
from people import Headers

WHOAMI = "/api/whoami-v2"
Application = Callable[[Any, Any, Any], Awaitable[None]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def served(
    app: Application, settings: ServerSettings | None = None
) -> AsyncIterator[Streams]:
    """Yield one connection to a server."""
    config = server_config(app, settings or ServerSettings())
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    listener = socket.create_server(("127.0.0.1", 0))
    await server.startup(sockets=[listener])
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    try:
        async with asyncio.timeout(SOON_SECONDS):
            yield reader, writer
    finally:
        writer.close()
        await server.shutdown(sockets=[listener])


def a_request(path: str, headers: Headers | None = None, method: str = "GET") -> bytes:
    fields = {"host": "hub.test"} | dict(headers or {})
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode()


async def read_response(
    reader: asyncio.StreamReader, *, has_body: bool = True
) -> tuple[str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = re.search(r"content-length: (\d+)", head)
    assert length is not None
    return head, await reader.readexactly(int(length[1]) if has_body else 0)


def answering(*messages: dict[str, Any]) -> Application:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)

    return app


def start(*headers: tuple[bytes, bytes], status: int = 200) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


def body(content: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": content, "more_body": more}


@pytest.mark.parametrize(
    ("headers", "pieces", "left"),
    [
        pytest.param(
            [(b"Content-Length", b"3")],
            [b"abc"],
            b"content-length: 3\r\n\r\nabc",
            id="known length",
        ),
        pytest.param(
            [(b"X-A", b"\xe9\t")],
            [b"ab", b"c"],
            b"x-a: \xe9\t\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
            id="in chunks",
        ),
        pytest.param(
            [(b"connection", b"a, Close"), (b"content-length", b"0")],
            [b""],
            b"connection: a, Close\r\ncontent-length: 0\r\n\r\n",
            id="the last one",
        ),
    ],
)
async def test_a_response_is_written_as_it_was(
    headers: list[tuple[bytes, bytes]], pieces: list[bytes], left: bytes
) -> None:
    parts = [body(each, more=True) for each in pieces[:-1]] + [body(pieces[-1])]
    async with served(answering(start(*headers), *parts)) as (reader, writer):
        writer.write(a_request("/"))
        assert await reader.readexactly(17 + len(left)) == b"HTTP/1.1 200 OK\r\n" + left
        if b"connection" in dict(headers):
            assert await reader.read() == b""
        else:
            assert await stays_open(reader)


async def stays_open(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(0.1):
            return await reader.read() != b""
    except TimeoutError:
        return True


@pytest.mark.parametrize(
    "header",
    [
        pytest.param((b"x-a", b"b\r\nset-cookie: c"), id="a line break in a value"),
        pytest.param((b"x-a", b"b\x00"), id="NUL in a value"),
        pytest.param((b"x-a", "bé\r\n".encode("latin-1")), id="a line break beyond ASCII"),
        pytest.param((b"x-a\r\nb", b"c"), id="a line break in a name"),
        pytest.param((b"x a", b"c"), id="a blank in a name"),
    ],
)
async def test_a_header_that_would_break_the_head_is_not_sent(header: tuple[bytes, bytes]) -> None:
    async with served(answering(start(header), body(b""))) as (reader, writer):
        writer.write(a_request("/"))
        assert await reader.read() == b""


async def test_a_long_name_of_a_header_is_sent_and_not_remembered() -> None:
    name = b"x-" + b"a" * 10_000
    async with served(answering(start((name, b"b")), body(b""))) as (reader, writer):
        writer.write(a_request("/"))
        assert b"\r\n" + name + b": b\r\n" in await reader.readuntil(b"\r\n\r\n")

    assert name not in lean_protocol._names  # noqa: SLF001 - what is kept is the point.


@pytest.mark.parametrize(("length", "content"), [(b"2", b"abc"), (b"4", b"abc")])
async def test_a_body_of_another_length_than_it_was_said_ends_the_connection(
    length: bytes, content: bytes
) -> None:
    async with served(answering(start((b"content-length", length)), body(content))) as streams:
        streams[1].write(a_request("/"))
        assert not (await streams[0].read()).endswith(b"\r\n\r\nabcd")


async def test_the_head_of_a_stream_does_not_wait_for_its_first_piece() -> None:
    go_on = asyncio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(start())
        await go_on.wait()
        await send(body(b"late"))

    async with served(app) as (reader, writer):
        writer.write(a_request("/"))
        head = await reader.readuntil(b"\r\n\r\n")
        go_on.set()
        rest = await reader.readuntil(b"0\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert rest == b"4\r\nlate\r\n0\r\n\r\n"


async def test_a_connection_ends_when_it_was_idle_for_so_long_after_its_last_response() -> None:
    settings = ServerSettings(keep_alive_seconds=2)
    app = answering(start((b"content-length", b"1")), body(b"-"))
    async with served(app, settings) as (reader, writer):
        for _ in range(3):
            writer.write(a_request("/"))
            await reader.readuntil(b"\r\n\r\n-")
            # Three times this is longer than it may be idle.
            await asyncio.sleep(0.8)
        assert not reader.at_eof()
        assert await reader.read() == b""


async def test_a_response_without_a_body_hands_nothing_empty_to_the_transport() -> None:
    # Since Python 3.12 the transport of asyncio would try to write it for ever.
    transport = Mock()
    cycle = LeanCycle(
        scope=cast("Any", {"method": "GET"}),
        transport=transport,
        flow=FlowControl(transport),
        logger=Mock(),
        access_logger=Mock(),
        access_log=False,
        default_headers=[],
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=True,
        on_response=Mock(),
    )
    await cycle.send(start((b"content-length", b"0")))
    await cycle.send(body(b""))

    assert transport.mock_calls == [call.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")]


@pytest.fixture
def immediate(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each request to a fast route of this kind was answered at once."""
    found: list[bool] = []
    answer_now = edge.Edge.answer_now

    def noted(self: edge.Edge, scope: Any) -> bytes | None:
        answer = answer_now(self, scope)
        if scope["path"] == WHOAMI:
            found.append(answer is not None)
        return answer

    monkeypatch.setattr(edge.Edge, "answer_now", noted)
    return found


async def test_what_is_answered_at_once_is_the_same_as_what_has_a_task(
    app: FastAPI, database: Database, ada: Headers, immediate: list[bool]
) -> None:
    headers = ada | {"origin": "https://app.example", "x-request-id": "mine"}
    async with served(with_edge(app)) as (reader, writer):
        responses = []
        for _ in range(3):
            writer.write(a_request(WHOAMI, headers))
            responses.append(await read_response(reader))
        writer.write(a_request(WHOAMI, headers, method="HEAD"))
        asked = await read_response(reader, has_body=False)

    # The first one had to look the token up.
    assert immediate == [False, *[database.reads_at_once] * 2, False]
    assert {re.sub(r"r=\d+;t=\d+|date: .*", "", head) for head, _ in [*responses, asked]} == {
        re.sub(r"r=\d+;t=\d+|date: .*", "", responses[0][0])
    }
    assert len({content for _, content in responses}) == 1
    left = [int(found) for head, _ in responses for found in re.findall(r";r=(\d+);t", head)]
    assert left == [left[0], left[0] - 1, left[0] - 2]


async def test_who_asks_too_often_is_refused(
    app: FastAPI, ada: Headers, immediate: list[bool]
) -> None:
    settings = app.state.settings
    limits = edge_limits(settings, authenticated_requests=2)
    app.state.settings = limits
    async with served(with_edge(app)) as (reader, writer):
        heads = []
        for _ in range(4):
            writer.write(a_request(WHOAMI, ada))
            heads.append((await read_response(reader))[0])

    assert [head.split()[1] for head in heads] == ["200", "200", "429", "429"]
    assert immediate[2:] == [False, False]


def edge_limits(settings: Settings, **limits: int) -> Settings:
    return replace(settings, limits=replace(settings.limits, **limits))


async def test_what_goes_wrong_at_once_is_told_and_counted_as_usual(
    app: FastAPI, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(with_edge(app)) as (reader, writer):
        writer.write(a_request(WHOAMI, ada))
        before, _ = await read_response(reader)

        def away() -> None:
            raise DatabaseUnavailable("gone")

        monkeypatch.setattr(database, "read", away)
        writer.write(a_request(WHOAMI, ada))
        head, _ = await read_response(reader)

    assert head.startswith("HTTP/1.1 503 ")
    left = [int(found) for each in (before, head) for found in re.findall(r";r=(\d+);t", each)]
    # It came twice, and counts once.
    assert left == [left[0], left[0] - 1]


async def test_many_requests_at_once_are_answered_in_their_order_and_leave_others_a_turn(
    app: FastAPI, database: Database, ada: Headers, immediate: list[bool]
) -> None:
    async with served(with_edge(app)) as (reader, writer):
        writer.write(a_request(WHOAMI, ada))
        await read_response(reader)
        immediate.clear()
        ids = [f"r{number}" for number in range(20)]
        writer.write(b"".join(a_request(WHOAMI, ada | {"x-request-id": each}) for each in ids))
        heads = [(await read_response(reader))[0] for _ in ids]

    assert [re.findall(r"x-request-id: (\w+)", head) for head in heads] == [[each] for each in ids]
    assert immediate == [database.reads_at_once]


async def test_a_host_of_jobs_is_not_answered_by_the_hub(
    app: FastAPI, ada: Headers, immediate: list[bool]
) -> None:
    host = {"host": f"{'a' * 24}--80.{app.state.settings.jobs_domain}"}
    async with served(with_edge(app)) as (reader, writer):
        writer.write(a_request(WHOAMI, ada))
        await read_response(reader)
        immediate.clear()
        writer.write(a_request(WHOAMI, ada | host))
        head = await reader.readuntil(b"\r\n\r\n")

    assert not head.startswith(b"HTTP/1.1 200 ")
    assert immediate == []


async def test_a_client_of_http_1_0_is_told_each_time_that_its_connection_ends(
    app: FastAPI, ada: Headers
) -> None:
    request = a_request(WHOAMI, ada | {"connection": "keep-alive"})
    async with served(with_edge(app)) as (reader, writer):
        # From now on the caller is known.
        writer.write(request)
        await read_response(reader)
        writer.write(request.replace(b"HTTP/1.1", b"HTTP/1.0"))
        head, _ = await read_response(reader)
        assert "connection: close" in head
        assert await reader.read() == b""
