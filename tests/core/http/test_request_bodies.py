"""Large bodies that threads take from the socket, past the server."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import uvicorn
import uvloop
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hublet.core.http.request_bodies import Buffer, RequestBody
from hublet.core.http.server_protocol import ServerProtocol
from patience import SOON_SECONDS

# Neither the server nor the socket holds so much.
BODY = os.urandom(5 << 20)
MOST = 1 << 30
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class BodyBroke(Exception):
    pass


@dataclass(slots=True)
class Taker:
    """Writes bodies to memory, and answers how; a disk that is full refuses to be written to."""

    room: int = MOST
    most: int = MOST
    taken: bytearray = field(default_factory=bytearray)
    broken: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.taken.clear()
        body = RequestBody(Request(scope, receive), broken=BodyBroke)
        try:
            answer = "direct" if await body.copy_to(self.write, most=self.most) else "in pieces"
        except OSError:
            answer = "full"
        except BodyBroke:
            self.broken.set()
            return
        if answer == "in pieces":
            async for piece in body:
                self.taken += piece
        await Response(answer)(scope, receive, send)

    def write(self, data: Buffer) -> None:
        if len(self.taken) + len(data) > self.room:
            raise OSError("No space is left.")
        self.taken += data


@asynccontextmanager
async def served(app: Taker) -> AsyncIterator[Streams]:
    config = uvicorn.Config(app, http=ServerProtocol, ws="none", lifespan="off", log_config=None)
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


def put(body: bytes, *lines: bytes) -> bytes:
    head = [b"PUT / HTTP/1.1", b"host: x", b"content-length: %d" % len(body), *lines]
    return b"\r\n".join([*head, b"", body])


async def answer_of(reader: asyncio.StreamReader) -> str:
    head = await reader.readuntil(b"\r\n\r\n")
    [length] = [line[16:] for line in head.split(b"\r\n") if line.startswith(b"content-length: ")]
    return (await reader.readexactly(int(length))).decode()


async def check_two_requests_at_once() -> None:
    app = Taker()
    async with served(app) as (reader, writer):
        writer.write(put(BODY) + put(b"small"))

        assert await answer_of(reader) == "direct"
        assert await answer_of(reader) == "in pieces"
        assert app.taken == b"small"
        writer.write(put(BODY))
        assert await answer_of(reader) == "direct"
        assert app.taken == BODY


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_what_follows_a_body_is_the_next_request(new_loop: type[asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(check_two_requests_at_once())


async def test_a_body_that_comes_little_by_little_arrives_whole() -> None:
    app = Taker()
    async with served(app) as (reader, writer):
        for start in range(0, len(whole := put(BODY)), 300_000):
            writer.write(whole[start : start + 300_000])
            await writer.drain()
            await asyncio.sleep(0)

        assert await answer_of(reader) == "direct"
    assert app.taken == BODY


async def test_of_a_body_that_breaks_off_all_that_came_is_written() -> None:
    app = Taker()
    async with served(app) as (_, writer):
        writer.write(put(BODY)[:-1])
        writer.write_eof()
        await app.broken.wait()
    assert app.taken == BODY[:-1]


async def test_after_a_body_that_could_not_be_written_the_connection_goes_on() -> None:
    app = Taker(room=1 << 20)
    async with served(app) as (reader, writer):
        writer.write(put(BODY) + put(b"small"))

        assert await answer_of(reader) == "full"
        assert await answer_of(reader) == "in pieces"
    assert app.taken == b"small"


async def test_a_client_that_waits_for_a_100_gets_one() -> None:
    app, head = Taker(), put(BODY, b"expect: 100-continue")[: -len(BODY)]
    async with served(app) as (reader, writer):
        writer.write(head)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(BODY)

        assert await answer_of(reader) == "direct"
    assert app.taken == BODY


CHUNKED = b"PUT / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "most"),
    [
        pytest.param(put(BODY), len(BODY) - 1, id="a body that is too long"),
        pytest.param(CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY), MOST, id="chunks"),
        pytest.param(
            put(BODY, b"connection: upgrade", b"upgrade: h2c"), MOST, id="a request to upgrade"
        ),
    ],
)
async def test_any_other_body_is_read_in_pieces(sent: bytes, most: int) -> None:
    app = Taker(most=most)
    async with served(app) as (reader, writer):
        writer.write(sent)

        assert await answer_of(reader) == "in pieces"
    assert app.taken == BODY
