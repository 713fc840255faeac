"""Request bodies: bytes that threads take from the socket themselves, past the server.

On its way through the server a byte is copied five times before a route sees it, in pieces that the
loop handles one by one. A large body whose length is known is read here into one small buffer, and
written from there.
"""

import asyncio
import fcntl
import os
import socket
import sys
import termios
from collections.abc import AsyncIterator, Callable
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING
from weakref import ReferenceType, ref

from starlette.requests import ClientDisconnect, Request
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

if TYPE_CHECKING:
    from hublet.core.http.server_protocol import ServerProtocol

Buffer = bytes | bytearray | memoryview
# Called in threads, one call at a time; what it is given is overwritten afterwards.
Write = Callable[[Buffer], object]

RECEIVER_EXTENSION = "hublet.body"
# A smaller body is there before the switch is made.
_LEAST_BYTES = 1 << 18
# So much stays in the cache of a core from one step (receive, hash, write) to the next.
_PIECE_BYTES = 1 << 16
# One call in a thread takes at most this much, so that many uploads share few threads.
_MOST_BYTES_PER_CALL = 8 << 20
# And a client that is slower than the disk is not worth a call until so much has come.
_LEAST_BYTES_PER_CALL = 1 << 18


class RequestBody:
    """Body of a request, in pieces, or copied from the socket; once, in one of the two ways."""

    def __init__(self, request: Request, *, broken: Callable[[], Exception]) -> None:
        """Take what makes the error to raise when the client goes away before the end."""
        self._request = request
        self._broken = broken

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._request.stream():
                yield piece
        except ClientDisconnect:
            raise self._broken() from None

    async def copy_to(self, write: Write, *, most: int) -> bool:
        """Write the whole body in threads; False: it must be read in pieces, or is too long.

        Of a body that breaks off everything that arrived is written.
        """
        extensions = self._request.scope.get("extensions", {})
        receiver: DirectReceiver | None = extensions.get(RECEIVER_EXTENSION, {}).get("receiver")
        if receiver is None:
            return False
        try:
            return await receiver.copy_to(write, most=most)
        except ClientDisconnect:
            raise self._broken() from None


class DirectReceiver:
    """Reads the body of one request from its socket, if that can be done."""

    __slots__ = ("_cycle", "_protocol")

    def __init__(self, protocol: "ServerProtocol", cycle: RequestResponseCycle) -> None:
        # The cycle holds the scope, and the scope holds this.
        self._protocol: ReferenceType[ServerProtocol] = ref(protocol)
        self._cycle: ReferenceType[RequestResponseCycle] = ref(cycle)

    async def copy_to(self, write: Write, *, most: int) -> bool:
        cycle, protocol = self._cycle(), self._protocol()
        if cycle is None or protocol is None or cycle.disconnected:
            return False
        missing = protocol.count_missing(cycle)
        if missing < _LEAST_BYTES or missing + len(cycle.body) > most:
            return False
        with closing(BodySocket(protocol, cycle, missing)) as body:
            await body.copy_to(write)
        return True


class BodySocket:
    """The rest of a body: bytes that the server has read, and those that it will not read."""

    def __init__(
        self, protocol: "ServerProtocol", cycle: RequestResponseCycle, missing: int
    ) -> None:
        self._protocol = protocol
        self._cycle = cycle
        self._early, cycle.body = bytes(cycle.body), bytearray()
        self._missing = missing
        self._is_empty = False
        self._is_waiting = False
        self._least_bytes = 1
        if cycle.waiting_for_100_continue:
            cycle.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            cycle.waiting_for_100_continue = False
        # The loop watches the transport's own descriptor already, so it gets another for ours.
        descriptor = os.dup(cycle.transport.get_extra_info("socket").fileno())
        self._socket = socket.socket(fileno=descriptor)
        protocol.divert(self)

    def close(self) -> None:
        # The next head may be short.
        with suppress(OSError):
            self._wait_for_bytes(1)
        self._socket.close()
        self._protocol.end_diversion(unread=self._missing)

    async def copy_to(self, write: Write) -> None:
        """Receive from threads, because the disk may be slow, but never wait there for the client."""
        if self._early:
            await self._call(partial(write, self._early))
        buffer = memoryview(bytearray(_PIECE_BYTES))
        while self._missing:
            before = self._missing
            try:
                await self._call(partial(self._receive_some, buffer, write))
            except (ConnectionError, EOFError):
                # The server does not read, and so would never notice.
                self._cycle.disconnected = True
                self._cycle.transport.abort()
                raise ClientDisconnect from None
            finally:
                self._protocol.count_diverted(before - self._missing)
            if self._is_empty:
                await self._readable()
            if self._cycle.disconnected and self._missing:
                raise ClientDisconnect

    async def _call(self, function: Callable[[], object]) -> None:
        call = asyncio.get_running_loop().run_in_executor(None, function)
        try:
            await asyncio.shield(call)
        except asyncio.CancelledError:
            # The socket must stay open for as long as the thread uses it.
            await asyncio.wait([call])
            raise

    def _receive_some(self, buffer: memoryview, write: Write) -> None:
        end = max(self._missing - _MOST_BYTES_PER_CALL, 0)
        while self._missing > end:
            try:
                count = self._socket.recv_into(buffer[: self._missing])
            except BlockingIOError:
                self._is_empty = True
                return
            if not count:
                raise EOFError("The client closed the connection in the middle of a body.")
            self._missing -= count
            write(buffer[:count])

    async def _readable(self) -> None:
        """Wait for more bytes, or for the end of the connection, of which the server is told."""
        loop, event = asyncio.get_running_loop(), self._cycle.message_event
        event.clear()
        self._wait_for_bytes(min(self._missing, _LEAST_BYTES_PER_CALL))
        loop.add_reader(self._socket, event.set)
        self._is_waiting = not self._cycle.disconnected
        try:
            if self._is_waiting:
                await event.wait()
        finally:
            self._is_waiting = self._is_empty = False
            loop.remove_reader(self._socket)

    def _wait_for_bytes(self, count: int) -> None:
        """Let the kernel call the socket readable only when it has so many bytes."""
        if count != self._least_bytes:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)
            self._least_bytes = count

    def is_held_up(self) -> bool:
        """Tell whether the client waits for the hub; take what it has sent, however little."""
        if not self._is_waiting:
            return True
        unread = fcntl.ioctl(self._socket, termios.FIONREAD, bytes(4))
        if int.from_bytes(unread, sys.byteorder):
            self._cycle.message_event.set()
        return False
