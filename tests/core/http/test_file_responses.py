"""Files over a real socket: handed to the kernel, whole and in part."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import AsyncMock, Mock

import pytest
import uvicorn
from starlette.requests import Request
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hublet.core.http.exchange import Exchange
from hublet.core.http.file_responses import blob_response
from hublet.core.http.response_bodies import DirectSender, find_sender
from hublet.core.http.server_protocol import ZeroCopyProtocol
from patience import SOON_SECONDS

CONTENT = os.urandom(3 << 20)


class OneFile(NamedTuple):
    path: Path | None

    def pieces(self, start: int, end: int) -> Generator[bytes]:
        raise AssertionError("The path is enough.")


class InPieces(NamedTuple):
    """The same file, as if it had to be put together."""

    file: Path
    path: None = None

    def pieces(self, start: int, end: int) -> Generator[memoryview]:
        with self.file.open("rb") as file:
            file.seek(start)
            while start < end:
                piece = memoryview(file.read(min(end - start, 70_001)))
                start += len(piece)
                yield piece


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "content"
    path.write_bytes(CONTENT)
    return path


class App:
    """Answers every request with one file, and remembers what it was told of each."""

    def __init__(self, path: Path, *, in_pieces: bool = False) -> None:
        self._path = path
        self._source = InPieces(path) if in_pieces else OneFile(path)
        self.exchanges: list[Exchange] = []
        self.kernel: list[bool] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange("id", "127.0.0.1", None, None, None)
        scope["exchange"] = exchange
        self.exchanges.append(exchange)
        self.kernel.append(find_sender(scope) is not None)
        response = await blob_response(
            Request(scope, receive),
            self._source,
            size=self._path.stat().st_size,
            etag="x",
            file_name="x",
            media_type="application/octet-stream",
        )
        await response(scope, receive, send)


@asynccontextmanager
async def served(app: App, protocol: type[asyncio.Protocol]) -> AsyncIterator[int]:
    config = uvicorn.Config(app, http=protocol, lifespan="off", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    try:
        yield listener.getsockname()[1]
    finally:
        await server.shutdown(sockets=[listener])


async def fetch(port: int, *requests: bytes) -> bytes:
    """Send all requests at once on one connection; return everything that comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"".join(requests))
    try:
        return await asyncio.wait_for(reader.read(-1), SOON_SECONDS)
    finally:
        writer.close()
        await writer.wait_closed()


def get(*headers: str, close: bool = True) -> bytes:
    lines = ["GET / HTTP/1.1", "host: x", *headers, *(["connection: close"] if close else [])]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("protocol", [ZeroCopyProtocol, HttpToolsProtocol])
async def test_a_file_arrives_whole_with_and_without_the_kernels_help(
    path: Path, protocol: type[asyncio.Protocol], *, in_pieces: bool
) -> None:
    app = App(path, in_pieces=in_pieces)
    async with served(app, protocol) as port:
        answer = await fetch(port, get())

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert body == CONTENT
    assert app.kernel == [protocol is ZeroCopyProtocol]


@pytest.mark.parametrize("in_pieces", [False, True])
async def test_answers_on_one_connection_follow_each_other(path: Path, *, in_pieces: bool) -> None:
    app = App(path, in_pieces=in_pieces)
    async with served(app, ZeroCopyProtocol) as port:
        answer = await fetch(
            port,
            get("range: bytes=10-19", close=False),
            get("range: bytes=-5", close=False),
            get(close=True),
        )

    parts = answer.split(b"HTTP/1.1 ")[1:]
    bodies = [part.partition(b"\r\n\r\n")[2] for part in parts]
    assert bodies == [CONTENT[10:20], CONTENT[-5:], CONTENT]
    assert [exchange.bytes_out for exchange in app.exchanges] == [10, 5, len(CONTENT)]


def a_hole(folder: Path, size: int) -> Path:
    """A file of this many zeros; it fills no disk."""
    path = folder / "hole"
    path.touch()
    os.truncate(path, size)
    return path


@pytest.mark.parametrize("in_pieces", [False, True])
async def test_a_slow_reader_gets_everything(tmp_path: Path, *, in_pieces: bool) -> None:
    # More than the sockets take without a reader, so that the server has to wait.
    size = 64 << 20
    async with served(App(a_hole(tmp_path, size), in_pieces=in_pieces), ZeroCopyProtocol) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 12)
        writer.write(get())
        await asyncio.sleep(0.2)
        answer = await asyncio.wait_for(reader.read(-1), SOON_SECONDS)
        writer.close()

    assert len(answer.partition(b"\r\n\r\n")[2]) == size


@pytest.mark.parametrize("in_pieces", [False, True])
async def test_a_client_that_leaves_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, in_pieces: bool
) -> None:
    app, before = App(a_hole(tmp_path, 1 << 30), in_pieces=in_pieces), open_files()
    async with served(app, ZeroCopyProtocol) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 12)
        writer.write(get())
        await reader.readexactly(1000)
        writer.transport.abort()
        await asyncio.sleep(0.3)

    assert [each for each in caplog.records if each.levelno > logging.INFO] == []
    assert 0 < app.exchanges[0].bytes_out < 1 << 30
    assert open_files() <= before


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class _Cycle:
    """What the server keeps of one request, as far as sending a file looks at it."""

    def __init__(self, connection: socket.socket) -> None:
        self.disconnected = False
        self.expected_content_length = len(CONTENT)
        self.flow = Mock(drain=AsyncMock())
        self.transport = Mock(get_extra_info=Mock(return_value=connection))
        self.flush_head = Mock()


async def test_who_left_before_the_server_noticed_is_gone_from_then_on(path: Path) -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    cycle = _Cycle(ours)
    with ours, path.open("rb") as file:
        sent = await DirectSender(cycle).send_file(file.fileno(), 0, len(CONTENT))  # type: ignore[arg-type] - the moment cannot be hit from outside

    assert (sent, cycle.disconnected) == (0, True)
    cycle.transport.abort.assert_called_once_with()


async def test_content_that_ends_too_early_is_never_taken_for_whole(tmp_path: Path) -> None:
    class Short(InPieces):
        def pieces(self, start: int, end: int) -> Generator[memoryview]:
            return super().pieces(start, end - 1)

    app = App(a_hole(tmp_path, 1 << 20))
    app._source = Short(tmp_path / "hole")  # noqa: SLF001
    async with served(app, ZeroCopyProtocol) as port:
        answer = await fetch(port, get())

    assert b"content-length: %d" % (1 << 20) in answer
    assert len(answer.partition(b"\r\n\r\n")[2]) < 1 << 20
