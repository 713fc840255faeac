"""Ports in a job of another machine: channels of one tunnel, each with room of its own."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest

from hublet.gateway.ssh.remote_listeners import LocalListener, RemoteListener, serve_listener
from hublet.runtime.attach.attachments import socket_pair
from patience import SOON_SECONDS

T = TypeVar("T")


async def soon(work: Awaitable[T]) -> T:
    async with asyncio.timeout(SOON_SECONDS):
        return await work


@asynccontextmanager
async def a_listener() -> AsyncIterator[RemoteListener]:
    """A port here, as the machine of the client sees it."""
    near, far = socket_pair()
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    serving = asyncio.create_task(serve_listener(far, LocalListener(listening)))
    listener = await soon(RemoteListener.over(near))
    assert listener.port == listening.getsockname()[1]
    try:
        yield listener
    finally:
        listener.close()
        await soon(serving)


async def connect(
    listener: RemoteListener,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, socket.socket]:
    """Connect to the port there; return that end, and the one at the machine of the client."""
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    made, host, port = await soon(listener.accept())
    assert (host, port) == writer.get_extra_info("sockname")
    return reader, writer, made


async def receive_all(made: socket.socket) -> bytes:
    loop, pieces = asyncio.get_running_loop(), []
    while piece := await soon(loop.sock_recv(made, 1 << 16)):
        pieces.append(piece)
    return b"".join(pieces)


async def test_bytes_pass_in_both_directions_and_each_ends_for_itself() -> None:
    async with a_listener() as listener:
        reader, writer, made = await connect(listener)
        writer.write(b"from the job")
        writer.write_eof()
        assert await receive_all(made) == b"from the job"
        await asyncio.get_running_loop().sock_sendall(made, b"from the client")
        made.close()

        assert await soon(reader.read()) == b"from the client"
        writer.close()


async def test_a_connection_that_nobody_reads_holds_up_no_other() -> None:
    async with a_listener() as listener:
        _, stuck, unread = await connect(listener)
        stuck.write(b"x" * (1 << 23))
        _, writer, made = await connect(listener)
        much = b"y" * (1 << 20)
        writer.write(much)
        writer.write_eof()

        assert await receive_all(made) == much
        stuck.write_eof()
        assert len(await receive_all(unread)) == 1 << 23
        for each in (stuck, writer):
            each.close()
        unread.close()
        made.close()


async def test_an_end_that_is_closed_here_is_closed_there() -> None:
    async with a_listener() as listener:
        reader, writer, made = await connect(listener)
        made.close()
        assert await soon(reader.read()) == b""
        writer.close()


async def test_the_listener_ends_with_its_tunnel() -> None:
    async with a_listener() as listener:
        reader, writer, made = await connect(listener)
        port = listener.port
        listener.close()
        assert await soon(reader.read()) == b""
        writer.close()
        made.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
