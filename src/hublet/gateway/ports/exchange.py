"""Exchange with a job: a request out and its response back, or a splice after an upgrade."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hublet.core.clock import monotonic
from hublet.core.http.exchange import Exchange as Known
from hublet.core.http.server_protocol import HeldConnection
from hublet.gateway.errors import ClientDisconnected, ExchangeAborted, ResponseLost
from hublet.gateway.ports.headers import ProxyRequest, response_headers
from hublet.gateway.ports.open_connections import OpenConnection
from hublet.gateway.ports.upstream import SWITCHING_PROTOCOLS, ResponseHead, Upstream

Receive = Callable[[], Awaitable[Any]]


async def send_body(
    receive: Receive, upstream: Upstream, *, length: int | None, when_sent: Callable[[], None]
) -> None:
    """Send the body to the job, in chunks where its length is not known, then wait for the end.

    Raises ClientDisconnected; it never returns otherwise.
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
    """Ends when both sides have ended: what one said last still reaches the other."""

    done: asyncio.Event = field(default_factory=asyncio.Event)
    used_at: float = field(default_factory=monotonic)
    sides: list["_SpliceSide"] = field(default_factory=list)

    def join(self, visitor: asyncio.Transport, job: asyncio.Transport) -> None:
        """Take over both connections; their own protocols hear only of the end."""
        near, far = _SpliceSide(self, visitor), _SpliceSide(self, job)
        near.other, far.other = far, near
        self.sides = [near, far]
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
        """Say so to the other side, which may still have something to say."""
        self._has_ended = True
        there = self.other.transport
        if self.other._has_ended:  # noqa: SLF001 - another of the same kind.
            # Nobody reads from that one any more, so nobody else would notice its end.
            there.close()
            return False
        if there.is_closing() or not there.can_write_eof():
            return False
        there.write_eof()
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


# Most answers are there sooner: only then is it worth to watch whether the visitor is.
_WATCH_AFTER_SECONDS = 0.05


Send = Callable[[Any], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class ProxyExchange:
    """What came in, how it goes on, and where its answer goes."""

    asked: ProxyRequest
    head: bytes
    # Of the body; None: it comes in chunks.
    length: int | None
    receive: Receive
    send: Send
    held: HeldConnection | None
    known: Known

    @property
    def may_switch(self) -> bool:
        return self.held is not None and self.asked.upgrade is not None

    @property
    def is_repeatable(self) -> bool:
        """Tell whether a job may be asked twice, where the first time may not have arrived."""
        is_safe = self.asked.method in {b"GET", b"HEAD", b"OPTIONS"}
        return is_safe and self.length == 0 and not self.may_switch


async def run_exchange(each: ProxyExchange, upstream: Upstream, end: OpenConnection) -> None:
    """Ask the job and pass on what it says. Raises ResponseLost before, ExchangeAborted after it began."""
    end.used_at, end.cut = (lambda: upstream.used_at), upstream.abort
    if end.is_closed:
        raise ResponseLost
    is_head = each.asked.method == b"HEAD"
    upstream.send_head(each.head, is_head=is_head, may_switch=each.may_switch)
    watch = _BodySender(each, upstream)
    try:
        head = await upstream.head()
        if upstream.switched is None:
            await _send_response(each, upstream, head)
            return
    finally:
        await watch.stop()
    await _switch_protocols(each, upstream, end, *upstream.switched)


async def _send_response(each: ProxyExchange, upstream: Upstream, head: ResponseHead) -> None:
    each.known.started, each.known.status = True, head.status
    # An answer to HEAD tells the length of what it leaves out.
    is_bare = head.has_no_body and each.asked.method != b"HEAD"
    headers = response_headers(head.headers, has_no_body=is_bare)
    await each.send({"type": "http.response.start", "status": head.status, "headers": headers})
    more = True
    try:
        while more:
            body, more = await upstream.piece()
            each.known.bytes_out += len(body)
            await each.send({"type": "http.response.body", "body": body, "more_body": more})
    except ResponseLost:
        raise ExchangeAborted from None


async def _switch_protocols(
    each: ProxyExchange, upstream: Upstream, end: OpenConnection, raw: bytes, early: bytes
) -> None:
    """Let both sides speak what they agreed on."""
    taken = None if each.held is None else each.held.take_over()
    if taken is None:
        raise ExchangeAborted
    each.known.started, each.known.status = True, SWITCHING_PROTOCOLS
    transport, beyond = taken
    splice = Splice()
    end.used_at, end.cut = (lambda: splice.used_at), splice.abort
    transport.write(raw + early)
    if beyond:
        upstream.transport.write(beyond)
    splice.join(transport, upstream.transport)
    try:
        await splice.done.wait()
    finally:
        splice.abort()


class _BodySender:
    """Carries the body to the job, and breaks off what nobody waits for any more."""

    def __init__(self, each: ProxyExchange, upstream: Upstream) -> None:
        self._each, self._upstream = each, upstream
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_sent = each.length == 0
        if self._is_sent:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_WATCH_AFTER_SECONDS, self._begin)
        else:
            self._begin()

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._carry(), name="body to a job")

    async def _carry(self) -> None:
        length = self._each.length
        try:
            await send_body(
                self._each.receive, self._upstream, length=length, when_sent=self._note_sent
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
