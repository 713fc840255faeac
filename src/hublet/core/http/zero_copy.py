"""Lets the kernel send files: a server protocol that offers it to answers as an extension."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import closing
from weakref import ReferenceType, ref

from starlette.types import Scope
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from hublet.core.http.exchange import Exchange

# Sends bytes of an open file as a part of the body: its descriptor, from where on, how many.
# Returns how many the client took before it left.
SendFile = Callable[[int, int, int], Awaitable[int]]

_EXTENSION = "hublet.send-file"
# The kernel takes what fits into the socket's buffer; this only bounds one call on a fast network.
_MOST_AT_ONCE = 8 << 20


def find_send_file(scope: Scope) -> SendFile | None:
    """Return the way past this process's memory, if the server has one."""
    found: SendFile | None = scope.get("extensions", {}).get(_EXTENSION, {}).get("send")
    return found


class ZeroCopyProtocol(HttpToolsProtocol):
    """HTTP as the server speaks it, with `hublet.send-file` beside `send`."""

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        # With TLS the bytes must pass through this process.
        if cycle.scope["method"] == "GET" and self.scheme == "http":
            cycle.scope["extensions"] = {_EXTENSION: {"send": _Sender(cycle)}}
        super()._start_asgi_task(cycle, app)

    def shutdown(self) -> None:
        super().shutdown()
        exchange = self.cycle.scope.get("exchange") if self.cycle else None
        if isinstance(exchange, Exchange) and exchange.on_stop is not None:
            exchange.on_stop()


class _Sender:
    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        # The cycle holds the scope, and the scope holds this: a strong reference would leave
        # every request to the garbage collector.
        self._cycle: ReferenceType[RequestResponseCycle] = ref(cycle)

    async def __call__(self, file: int, start: int, count: int) -> int:
        cycle = self._cycle()
        if cycle is None or not await _is_drained(cycle):
            return 0
        # The loop watches the transport's own descriptor already, so it gets another for ours.
        with closing(_Socket(cycle.transport.get_extra_info("socket").fileno())) as socket:
            try:
                await socket.send(file, start, count)
            except ConnectionError:
                # The server would notice later than this, and call the answer incomplete.
                cycle.disconnected = True
                cycle.transport.abort()
        cycle.expected_content_length -= socket.sent
        return socket.sent


async def _is_drained(cycle: RequestResponseCycle) -> bool:
    """Wait until what was written before, the headers, has left; False when nobody reads it."""
    if not cycle.disconnected:
        cycle.transport.set_write_buffer_limits(high=0)
        await cycle.flow.drain()
        cycle.transport.set_write_buffer_limits()
    return not cycle.disconnected


class _Socket:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = os.dup(descriptor)
        self.sent = 0

    def close(self) -> None:
        os.close(self._descriptor)

    async def send(self, file: int, start: int, count: int) -> None:
        """Send from threads, because the disk may be slow, but never wait there for the client."""
        loop = asyncio.get_running_loop()
        while self.sent < count:
            at = start + self.sent
            call = loop.run_in_executor(None, self._send_some, file, at, count - self.sent)
            try:
                sent = await asyncio.shield(call)
            except asyncio.CancelledError:
                # The descriptors must stay open for as long as the thread uses them.
                await asyncio.wait([call])
                raise
            self.sent += sent
            if not sent:
                await self._writable(loop)

    def _send_some(self, file: int, start: int, count: int) -> int:
        try:
            sent = os.sendfile(self._descriptor, file, start, min(count, _MOST_AT_ONCE))
        except BlockingIOError:
            return 0
        if not sent:
            raise EOFError("The file is shorter than it was said to be.")
        return sent

    async def _writable(self, loop: asyncio.AbstractEventLoop) -> None:
        ready = asyncio.Event()
        loop.add_writer(self._descriptor, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_writer(self._descriptor)
