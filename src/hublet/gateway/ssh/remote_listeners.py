"""Listeners on another machine: each connection to a port in a job there, as a channel of a tunnel.

The machine of the job has the port, and `serve_listener` accepts there; that of the SSH client holds a
`RemoteListener`. A frame is a mark, the number of its channel, the length of its data, and the data. A
side sends no more than the other has room for, so a connection that nobody reads holds up no other.
"""

import asyncio
import json
import socket
import struct
from contextlib import suppress
from typing import Protocol

from hublet.runtime.attach.attachments import socket_pair

_HEADER = struct.Struct(">cII")
_NUMBER = struct.Struct(">I")
_PIECE_BYTES = 1 << 16
# What may be under way to a channel before its other end has taken it.
_WINDOW_BYTES = 1 << 18
_MAX_CHANNELS = 500
_LISTENING, _OPENED, _DATA, _ENDED, _TAKEN, _BROKEN = b"l", b"o", b"d", b"e", b"t", b"b"

# A connection to a port in a job, and where it came from.
Accepted = tuple[socket.socket, str, int]


class Listener(Protocol):
    """A port in a job on which connections are accepted."""

    port: int

    async def accept(self) -> Accepted:
        """Return the next connection. Raises OSError when there will be none."""
        ...

    def close(self) -> None: ...


class LocalListener:
    """A port in a job of this machine; see `Listener`."""

    def __init__(self, made: socket.socket) -> None:
        self._socket = made
        self.port = int(made.getsockname()[1])

    async def accept(self) -> Accepted:
        made, origin = await asyncio.get_running_loop().sock_accept(self._socket)
        made.setblocking(False)
        return made, origin[0], origin[1]

    def close(self) -> None:
        self._socket.close()


class _Channel:
    """One connection: a socket here, whose other end is on the other machine."""

    def __init__(self, made: socket.socket) -> None:
        self.socket = made
        self.room = _WINDOW_BYTES
        self.has_room = asyncio.Event()
        self.received: asyncio.Queue[bytes] = asyncio.Queue()
        self.task: asyncio.Task[None] | None = None


class _Channels:
    """The channels of one tunnel, seen from one of its sides."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._channels: dict[int, _Channel] = {}

    def __len__(self) -> int:
        return len(self._channels)

    def send(self, mark: bytes, number: int = 0, data: bytes = b"") -> None:
        self._writer.write(_HEADER.pack(mark, number, len(data)) + data)

    async def read(self) -> tuple[bytes, int, bytes] | None:
        """Return the next frame; None: the other machine has closed the tunnel."""
        try:
            mark, number, length = _HEADER.unpack(await self._reader.readexactly(_HEADER.size))
            return mark, number, await self._reader.readexactly(length)
        except (OSError, asyncio.IncompleteReadError):
            return None

    def add(self, number: int, made: socket.socket) -> None:
        """Join a socket to a channel until both its directions have ended."""
        channel = self._channels[number] = _Channel(made)
        channel.task = asyncio.create_task(self._pump(number, channel), name="remote-channel")

    def handle(self, mark: bytes, number: int, data: bytes) -> None:
        """Do what a frame says; what comes for a channel that is gone is nobody's."""
        channel = self._channels.get(number)
        if channel is None:
            return
        if mark in {_DATA, _ENDED}:
            channel.received.put_nowait(data)
        elif mark == _TAKEN:
            channel.room += _NUMBER.unpack(data)[0]
            channel.has_room.set()
        elif mark == _BROKEN and channel.task is not None:
            channel.task.cancel()

    async def close(self) -> None:
        tasks = [each.task for each in self._channels.values() if each.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _pump(self, number: int, channel: _Channel) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._send_all(number, channel))
                group.create_task(self._receive_all(number, channel))
        except* OSError:
            # Its end here was reset, and so is the other.
            self.send(_BROKEN, number)
        finally:
            del self._channels[number]
            channel.socket.close()

    async def _send_all(self, number: int, channel: _Channel) -> None:
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(channel.socket, min(channel.room, _PIECE_BYTES)):
            channel.room -= len(data)
            self.send(_DATA, number, data)
            await self._writer.drain()
            while channel.room == 0:
                channel.has_room.clear()
                await channel.has_room.wait()
        self.send(_ENDED, number)

    async def _receive_all(self, number: int, channel: _Channel) -> None:
        loop = asyncio.get_running_loop()
        while data := await channel.received.get():
            await loop.sock_sendall(channel.socket, data)
            self.send(_TAKEN, number, _NUMBER.pack(len(data)))
        channel.socket.shutdown(socket.SHUT_WR)


class RemoteListener:
    """A port in a job of another machine; see `Listener`."""

    def __init__(self, channels: _Channels, port: int) -> None:
        self.port = port
        self._channels = channels
        self._accepted: asyncio.Queue[Accepted | None] = asyncio.Queue()
        self._task = asyncio.create_task(self._run(), name="remote-listener")

    @classmethod
    async def over(cls, made: socket.socket) -> "RemoteListener":
        """Listen over a connection to the machine of the job. Raises OSError."""
        channels = _Channels(*await asyncio.open_connection(sock=made))
        frame = await channels.read()
        if frame is None or frame[0] != _LISTENING:
            await channels.close()
            raise ConnectionResetError("The machine of the job went away.")
        return cls(channels, frame[1])

    async def accept(self) -> Accepted:
        accepted = await self._accepted.get()
        if accepted is None:
            raise ConnectionResetError("The machine of the job went away.")
        return accepted

    def close(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        try:
            while (frame := await self._channels.read()) is not None:
                mark, number, data = frame
                if mark != _OPENED:
                    self._channels.handle(mark, number, data)
                    continue
                ours, theirs = socket_pair()
                self._channels.add(number, theirs)
                host, port = json.loads(data)
                self._accepted.put_nowait((ours, host, port))
        finally:
            while not self._accepted.empty():
                if (accepted := self._accepted.get_nowait()) is not None:
                    accepted[0].close()
            self._accepted.put_nowait(None)
            await self._channels.close()


async def serve_listener(made: socket.socket, listener: Listener) -> None:
    """Bring the connections to a port in a job here to the other machine, until that closes the tunnel."""
    channels = _Channels(*await asyncio.open_connection(sock=made))
    channels.send(_LISTENING, listener.port)
    accepting = asyncio.create_task(_accept_all(listener, channels), name="remote-listener")
    try:
        while (frame := await channels.read()) is not None:
            channels.handle(*frame)
    finally:
        accepting.cancel()
        await asyncio.gather(accepting, return_exceptions=True)
        listener.close()
        await channels.close()


async def _accept_all(listener: Listener, channels: _Channels) -> None:
    number = 0
    while True:
        made, host, port = await listener.accept()
        if len(channels) >= _MAX_CHANNELS:
            made.close()
            continue
        number += 1
        channels.send(_OPENED, number, json.dumps([host, port]).encode())
        channels.add(number, made)
