"""How the server reads a connection: heads that have an end, and bodies behind any head."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest
import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hublet.core.http import server_protocol
from hublet.core.http.server_protocol import MAX_HEAD_BYTES, ServerProtocol
from patience import SOON_SECONDS

CLOSE = b"connection: close\r\n"
ASKED = b"GET / HTTP/1.1\r\nhost: x\r\n"


@dataclass(slots=True)
class Echo:
    """Answers with the body, and counts."""

    whole: int = 0
    broken: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            self.broken.set()
            return
        self.whole += 1
        await Response(body or b"-")(scope, receive, send)


@asynccontextmanager
async def served(app: Echo) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yield one connection to a server."""
    config = uvicorn.Config(
        app, http=ServerProtocol, ws="none", lifespan="off", log_config=None, date_header=False
    )
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


def a_head(size: int) -> bytes:
    """A whole head of this many bytes, the last one on its connection."""
    start, end = ASKED + CLOSE + b"x-long: ", b"\r\n\r\n"
    return start + b"a" * (size - len(start) - len(end)) + end


def is_refused(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    said = b"connection: close" in lines and b"content-type: application/json" in lines
    sentence = {"error": "The head of a request has at most 256 KiB."}
    is_status = lines[0] == b"HTTP/1.1 431 Request Header Fields Too Large"
    return is_status and said and json.loads(body) == sentence


async def flood(writer: asyncio.StreamWriter, piece: bytes) -> None:
    """Send for as long as the other side lets it."""
    with suppress(ConnectionError):
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(b"GET /", id="a path"),
        pytest.param(ASKED + b"x-", id="a name"),
        pytest.param(ASKED + b"x-long: ", id="a value"),
    ],
)
async def test_a_head_without_an_end_is_refused_and_read_no_further(
    start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_protocol, "_LINGER_SECONDS", 0.2)
    async with served(app := Echo()) as (reader, writer):
        writer.write(start)
        flooding = asyncio.ensure_future(flood(writer, b"a" * 4000))
        answer = await reader.readuntil(b"}")
        await flooding

    assert is_refused(answer)
    assert app.whole == 0


@pytest.mark.parametrize(
    ("size", "is_answered"), [(MAX_HEAD_BYTES, True), (MAX_HEAD_BYTES + 1, False)]
)
async def test_a_head_has_a_size(*, size: int, is_answered: bool) -> None:
    async with served(Echo()) as (reader, writer):
        writer.write(a_head(size))
        answer = await reader.read()

    assert answer.startswith(b"HTTP/1.1 200 ") is is_answered
    assert is_refused(answer) is not is_answered


async def test_a_later_head_has_a_limit_too() -> None:
    async with served(Echo()) as (reader, writer):
        writer.write(ASKED + b"\r\n")
        await reader.readuntil(b"\r\n\r\n-")
        writer.write(a_head(3 * MAX_HEAD_BYTES))
        answer = await reader.read()

    assert is_refused(answer)


async def test_a_body_behind_a_head_in_two_parts_has_no_limit() -> None:
    body = bytes(3 * MAX_HEAD_BYTES)
    head = b"POST / HTTP/1.1\r\nhost: x\r\n%bcontent-length: %d\r\n\r\n" % (CLOSE, len(body))
    async with served(Echo()) as (reader, writer):
        writer.write(head[:-2])
        await asyncio.sleep(0.05)
        writer.write(head[-2:] + body)
        answer = await reader.read()

    assert answer.endswith(b"\r\n\r\n" + body)


async def test_many_requests_at_once_are_not_one_large_head() -> None:
    count = 4 * MAX_HEAD_BYTES // 1000
    each = ASKED + b"x-some: %b\r\n\r\n" % (b"a" * 1000)
    async with served(app := Echo()) as (reader, writer):
        writer.write(each * count)
        for _ in range(count):
            await reader.readuntil(b"\r\n\r\n-")

    assert app.whole == count


async def test_what_follows_a_body_in_chunks_has_a_limit() -> None:
    async with served(app := Echo()) as (_, writer):
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        writer.write(b"1\r\na\r\n0\r\nx-long: ")
        await flood(writer, b"a" * 4000)
        await app.broken.wait()

    assert app.whole == 0


@pytest.mark.parametrize(
    ("framing", "sent"),
    [
        pytest.param(b"content-length: 6", b"abcdef", id="of a known length"),
        pytest.param(
            b"transfer-encoding: chunked", b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n", id="in chunks"
        ),
    ],
)
async def test_a_request_for_another_protocol_keeps_its_body(framing: bytes, sent: bytes) -> None:
    lines = [b"POST / HTTP/1.1", b"host: x", framing, b"connection: upgrade", b"upgrade: h2c"]
    behind = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nxyz"
    async with served(app := Echo()) as (reader, writer):
        writer.write(b"\r\n".join([*lines, b"", b""]) + sent[:4])
        await asyncio.sleep(0.05)
        writer.write(sent[4:] + behind)
        answer = await reader.read()

    assert answer.endswith(b"connection: close\r\n\r\nabcdef")
    assert app.whole == 1
