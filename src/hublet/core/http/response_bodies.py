"""Response bodies: files and pieces that go to the socket themselves, past the server.

The kernel sends a file without this process reading it; pieces are sent by the thread that makes
them, and not copied into one.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from weakref import ReferenceType, ref

from starlette.types import Scope

from hublet.core.lean_protocol import LeanCycle

Buffer = bytes | bytearray | memoryview

SENDER_EXTENSION = "hublet.send"
# The kernel takes what fits into the socket's buffer; this only bounds one call on a fast network.
_MAX_BYTES_PER_CALL = 8 << 20


class DirectSender:
    """Sends a part of the body; returns how many bytes the client took before it left."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: LeanCycle) -> None:
        # The cycle holds the scope, and the scope holds this: a strong reference would leave
        # every request to the garbage collector.
        self._cycle: ReferenceType[LeanCycle] = ref(cycle)

    async def send_file(self, file: int, start: int, count: int) -> int:
        """Send bytes of an open file: its descriptor, from where on, how many."""
        return await self._send(lambda socket: partial(socket.send_file, file, start, count), count)

    async def send_pieces(self, pieces: Iterator[Buffer], count: int) -> int:
        """Send pieces, which have so many bytes together and are taken in threads."""
        return await self._send(lambda socket: partial(socket.send_pieces, pieces, count), count)

    async def _send(
        self, sending: Callable[["_DirectSocket"], Callable[[], None]], count: int
    ) -> int:
        cycle = self._cycle()
        if cycle is None or not await _drain(cycle):
            return 0
        # The loop watches the transport's own descriptor already, so it gets another for ours.
        with closing(_DirectSocket(cycle.transport.get_extra_info("socket").fileno())) as socket:
            try:
                await socket.run(sending(socket), count)
            except ConnectionError:
                # The server would notice later than this, and call the answer incomplete.
                cycle.disconnected = True
                cycle.transport.abort()
        cycle.expected_content_length -= socket.sent
        return socket.sent


def find_sender(scope: Scope) -> DirectSender | None:
    """Return what sends past the server, if the connection allows it."""
    sender: DirectSender | None = (
        scope.get("extensions", {}).get(SENDER_EXTENSION, {}).get("sender")
    )
    return sender


async def _drain(cycle: LeanCycle) -> bool:
    """Wait until what was written before, the headers, has left; False when nobody reads it."""
    if not cycle.disconnected:
        cycle.flush_head()
        cycle.transport.set_write_buffer_limits(high=0)
        await cycle.flow.drain()
        cycle.transport.set_write_buffer_limits()
    return not cycle.disconnected


class _DirectSocket:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = os.dup(descriptor)
        self._is_full = False
        # Of a piece that the socket took only in part.
        self._rest = memoryview(b"")
        self.sent = 0

    def close(self) -> None:
        os.close(self._descriptor)

    async def run(self, send_some: Callable[[], None], count: int) -> None:
        """Send from threads, because the disk may be slow, but never wait there for the client."""
        loop = asyncio.get_running_loop()
        while self.sent < count:
            call = loop.run_in_executor(None, send_some)
            try:
                await asyncio.shield(call)
            except asyncio.CancelledError:
                # The descriptors must stay open for as long as the thread uses them.
                await asyncio.wait([call])
                raise
            if self._is_full:
                await self._writable(loop)
                self._is_full = False

    def send_file(self, file: int, start: int, count: int) -> None:
        size = min(count - self.sent, _MAX_BYTES_PER_CALL)
        try:
            sent = os.sendfile(self._descriptor, file, start + self.sent, size)
        except BlockingIOError:
            self._is_full = True
            return
        if not sent:
            raise EOFError("The file is shorter than it was said to be.")
        self.sent += sent

    def send_pieces(self, pieces: Iterator[Buffer], count: int) -> None:
        before = self.sent
        while self.sent < count and self.sent - before < _MAX_BYTES_PER_CALL:
            self._rest = self._rest or memoryview(next(pieces, b""))
            if not self._rest:
                raise EOFError("The content is shorter than it was said to be.")
            try:
                sent = os.write(self._descriptor, self._rest)
            except BlockingIOError:
                self._is_full = True
                return
            self._rest = self._rest[sent:]
            self.sent += sent

    async def _writable(self, loop: asyncio.AbstractEventLoop) -> None:
        ready = asyncio.Event()
        loop.add_writer(self._descriptor, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_writer(self._descriptor)
