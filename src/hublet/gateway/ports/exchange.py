"""Exchange with a job: a request to it and its response back, or a splice after an upgrade."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hublet.core.clock import monotonic
from hublet.core.http.exchange import Exchange
from hublet.core.http.server_protocol import HeldConnection
from hublet.gateway.errors import ClientDisconnected, ExchangeAborted, ResponseLost
from hublet.gateway.ports.headers import ProxyRequest, response_headers
from hublet.gateway.ports.open_connections import OpenConnection
from hublet.gateway.ports.upstream import SWITCHING_PROTOCOLS, ResponseHead, Upstream

# Most responses are faster: only after this is it worth to watch for a disconnect.
_WATCH_AFTER_SECONDS = 0.05

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class ProxyExchange:
    """A request, its head for the job, and where its response goes."""

    request: ProxyRequest
    head: bytes
    # Of the body; None: it is chunked.
    length: int | None
    receive: Receive
    send: Send
    client: HeldConnection | None
    exchange: Exchange

    @property
    def may_switch(self) -> bool:
        return self.client is not None and self.request.upgrade is not None

    @property
    def is_repeatable(self) -> bool:
        """Tell whether the request may be sent again if the job may not have received it."""
        is_safe = self.request.method in {b"GET", b"HEAD", b"OPTIONS"}
        return is_safe and self.length == 0 and not self.may_switch


async def run_exchange(
    proxied: ProxyExchange, upstream: Upstream, connection: OpenConnection
) -> None:
    """Send the request and pass the response on.

    Raises ResponseLost before the response has begun, ExchangeAborted after that.
    """
    connection.used_at, connection.cut = (lambda: upstream.used_at), upstream.abort
    if connection.is_closed:
        raise ResponseLost
    is_head = proxied.request.method == b"HEAD"
    upstream.send_head(proxied.head, is_head=is_head, may_switch=proxied.may_switch)
    watch = _BodySender(proxied, upstream)
    try:
        head = await upstream.head()
        if upstream.switched is None:
            await _send_response(proxied, upstream, head)
            return
    finally:
        await watch.stop()
    await _switch_protocols(proxied, upstream, connection, *upstream.switched)


async def _send_response(proxied: ProxyExchange, upstream: Upstream, head: ResponseHead) -> None:
    proxied.exchange.started, proxied.exchange.status = True, head.status
    # A response to HEAD keeps the length of the body that it omits.
    is_bare = head.has_no_body and proxied.request.method != b"HEAD"
    headers = response_headers(head.headers, has_no_body=is_bare)
    await proxied.send({"type": "http.response.start", "status": head.status, "headers": headers})
    more = True
    try:
        while more:
            body, more = await upstream.piece()
            proxied.exchange.bytes_out += len(body)
            await proxied.send({"type": "http.response.body", "body": body, "more_body": more})
    except ResponseLost:
        raise ExchangeAborted from None


async def _switch_protocols(
    proxied: ProxyExchange,
    upstream: Upstream,
    connection: OpenConnection,
    raw: bytes,
    early_bytes: bytes,
) -> None:
    """Splice both connections, for the protocol that they agreed on."""
    taken = None if proxied.client is None else proxied.client.take_over()
    if taken is None:
        raise ExchangeAborted
    proxied.exchange.started, proxied.exchange.status = True, SWITCHING_PROTOCOLS
    transport, client_bytes = taken
    splice = Splice()
    connection.used_at, connection.cut = (lambda: splice.used_at), splice.abort
    transport.write(raw + early_bytes)
    if client_bytes:
        upstream.transport.write(client_bytes)
    splice.join(transport, upstream.transport)
    try:
        await splice.done.wait()
    finally:
        splice.abort()


class _BodySender:
    """Sends the body to the job, and aborts the exchange when the client disconnects."""

    def __init__(self, proxied: ProxyExchange, upstream: Upstream) -> None:
        self._proxied, self._upstream = proxied, upstream
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_sent = proxied.length == 0
        if self._is_sent:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_WATCH_AFTER_SECONDS, self._start)
        else:
            self._start()

    def _start(self) -> None:
        self._task = asyncio.create_task(self._send(), name="body to a job")

    async def _send(self) -> None:
        length = self._proxied.length
        try:
            await send_body(
                self._proxied.receive, self._upstream, length=length, when_sent=self._note_sent
            )
        except ClientDisconnected:
            self._upstream.abort()

    def _note_sent(self) -> None:
        self._is_sent = True

    async def stop(self) -> None:
        if not self._is_sent:
            self._upstream.retire()
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task


async def send_body(
    receive: Receive, upstream: Upstream, *, length: int | None, when_sent: Callable[[], None]
) -> None:
    """Send the body to the job, chunked if its length is not known, then wait for a disconnect.

    It never returns: it raises ClientDisconnected.
    """
    more = length != 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        if not more:
            continue
        body, more = message.get("body", b""), message.get("more_body", False)
        data = body if length is not None else encode_chunk(body, is_last=not more)
        if data:
            await upstream.send(data)
        if not more:
            when_sent()


def encode_chunk(body: bytes, *, is_last: bool) -> bytes:
    framed = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
    return framed + b"0\r\n\r\n" if is_last else framed


@dataclass(slots=True, eq=False)
class Splice:
    """Two connections that forward to each other; ends when both have ended, so no byte is lost."""

    done: asyncio.Event = field(default_factory=asyncio.Event)
    used_at: float = field(default_factory=monotonic)
    sides: list["_SpliceSide"] = field(default_factory=list)

    def join(self, client: asyncio.Transport, job: asyncio.Transport) -> None:
        """Take over both transports; their old protocols are only notified of the end."""
        client_side, job_side = _SpliceSide(self, client), _SpliceSide(self, job)
        client_side.other, job_side.other = job_side, client_side
        self.sides = [client_side, job_side]
        for side in self.sides:
            side.begin()

    def abort(self) -> None:
        for side in self.sides:
            side.transport.abort()
        self.done.set()


class _SpliceSide(asyncio.Protocol):
    other: "_SpliceSide"

    def __init__(self, splice: Splice, transport: asyncio.Transport) -> None:
        self._splice = splice
        self.transport = transport
        self._before = transport.get_protocol()
        self._has_ended = self._is_over = False

    def begin(self) -> None:
        self.transport.set_protocol(self)
        self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._splice.used_at = monotonic()
        self.other.transport.write(data)

    def eof_received(self) -> bool:
        """Forward the end of file; the other side may still send."""
        self._has_ended = True
        target = self.other.transport
        if self.other._has_ended:  # noqa: SLF001 - another of the same kind.
            # That side is not read any more, so nobody would notice its end.
            target.close()
            return False
        if target.is_closing() or not target.can_write_eof():
            return False
        target.write_eof()
        return True

    def pause_writing(self) -> None:
        if not self.other.transport.is_closing():
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if not self.other.transport.is_closing():
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._before.connection_lost(exc)
        self._is_over = True
        self.other.transport.close()
        if self.other._is_over:  # noqa: SLF001 - another of the same kind.
            self._splice.done.set()
