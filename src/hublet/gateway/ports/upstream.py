"""Upstream connection to a job: HTTP/1.1, one request at a time, the response piece by piece."""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import httptools

from hublet.core.clock import monotonic
from hublet.core.http.server_protocol import MAX_HEAD_BYTES
from hublet.gateway.errors import NoResponse, ResponseLost
from hublet.gateway.ports.headers import Header

# Bytes that wait for the client; above this the job is not read any more.
_HIGH_WATER = 1 << 20
_HEAD_END = b"\r\n\r\n"
SWITCHING_PROTOCOLS = 101
_INFORMATIONAL, _FINAL = range(100, 200), range(200, 600)
_WITHOUT_BODY = frozenset({204, 304})
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})


@dataclass(frozen=True, slots=True)
class ResponseHead:
    status: int
    headers: list[Header]
    # Whether no body can follow, whatever the headers say.
    has_no_body: bool


class Upstream(asyncio.Protocol):
    """Speaks HTTP/1.1 to a job; one request at a time."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport = None  # type: ignore[assignment]
        # Called when it was closed by either side.
        self.when_closed: Callable[[Upstream], None] | None = None
        self.used_at = monotonic()
        self._drained: asyncio.Event | None = None
        self._wake: asyncio.Future[None] | None = None
        self._is_lost = False
        self._begin(is_head=False, may_switch=False)
        self._is_complete = True

    def _begin(self, *, is_head: bool, may_switch: bool) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._is_head = is_head
        # Raw bytes of a head that may switch protocols; None: bytes are parsed at once.
        self._raw: bytearray | None = bytearray() if may_switch else None
        # The raw head of a 101 response, and the bytes after it.
        self.switched: tuple[bytes, bytes] | None = None
        self._has_received = False
        self._headers: list[Header] = []
        self._head: ResponseHead | None = None
        self._body: deque[bytes] = deque()
        self._waiting = 0
        # Bytes since the last part of the body, or since the beginning.
        self._without_body = 0
        self._is_paused = False
        self._ends_by_closing = False
        self._is_complete = False
        self._has_failed = False
        # Whether this connection takes no further request.
        self._is_last = False

    def send_head(self, head: bytes, *, is_head: bool, may_switch: bool) -> None:
        """Begin a request."""
        self.used_at = monotonic()
        self._begin(is_head=is_head, may_switch=may_switch)
        self.transport.write(head)

    async def send(self, data: bytes) -> None:
        """Send a framed part of the body, as fast as the job reads it."""
        self.used_at = monotonic()
        if self._drained is not None:
            await self._drained.wait()
        if not self._is_lost:
            self.transport.write(data)

    async def head(self) -> ResponseHead:
        """Wait for the head of the response; see `switched`. Raises ResponseLost."""
        while self._head is None and self.switched is None:
            await self._wait_for_data()
        return self._head or ResponseHead(SWITCHING_PROTOCOLS, [], has_no_body=True)

    async def piece(self) -> tuple[bytes, bool]:
        """Wait for a part of the body; return it and whether more follows. Raises ResponseLost."""
        while not self._body and not self._is_complete:
            await self._wait_for_data()
        body = self._body.popleft() if len(self._body) == 1 else b"".join(self._body)
        self._body.clear()
        self._waiting = 0
        if self._is_paused:
            self._is_paused = False
            self.transport.resume_reading()
        return body, not self._is_complete

    @property
    def is_free(self) -> bool:
        """Tell whether it can take another request."""
        is_well = not (self._is_lost or self._has_failed or self._is_last)
        return self._is_complete and is_well and not self.transport.is_closing()

    def retire(self) -> None:
        """Take no further request, because the job has not received this one whole."""
        self._is_last = True

    def abort(self) -> None:
        self._has_failed = True
        self.transport.abort()
        self._notify()

    async def _wait_for_data(self) -> None:
        if self._has_failed:
            raise ResponseLost
        if self._is_lost:
            raise ResponseLost if self._has_received else NoResponse
        self._wake = asyncio.get_running_loop().create_future()
        try:
            await self._wake
        finally:
            self._wake = None

    def _notify(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.used_at = monotonic()
        self._has_received = True
        if self._is_complete:
            # Unsolicited bytes would be taken for the next response.
            self._is_last = True
            self.transport.close()
            return
        if self._raw is not None:
            self._raw += data
            data = self._out_of_raw()
        waiting = self._waiting
        if data:
            self._parse(data)
        # Neither a head nor trailers may fill the memory of the hub.
        self._without_body = self._without_body + len(data) if waiting == self._waiting else 0
        if max(self._without_body, len(self._raw or b"")) > MAX_HEAD_BYTES:
            self.abort()
        self._notify()

    def _out_of_raw(self) -> bytes:
        """Return the bytes to parse, once it is known that the response is HTTP."""
        raw = bytes(self._raw or b"")
        head, end, rest = raw.partition(_HEAD_END)
        if not end:
            return b""
        if head.startswith(b"HTTP/1.1 101"):
            self.switched, self._raw = (head + end, rest), None
            # Further bytes are for the splice.
            self.transport.pause_reading()
            return b""
        if head.startswith(b"HTTP/1.1 1"):
            self._raw = bytearray(rest)
            return self._out_of_raw()
        self._raw = None
        return raw

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._is_last = True
            if not self._is_complete:
                self.abort()

    def eof_received(self) -> None:
        self._is_last = True
        if self._head is not None and self._ends_by_closing:
            # RFC 9112, 6.3: without any framing the end of the connection is that of the body.
            self._is_complete = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        if exc is None and not self._has_failed:
            self.eof_received()
        self.resume_writing()
        self._notify()
        if self.when_closed is not None:
            self.when_closed(self)

    def pause_writing(self) -> None:
        self._drained = asyncio.Event()

    def resume_writing(self) -> None:
        if self._drained is not None:
            self._drained.set()
            self._drained = None

    def on_message_begin(self) -> None:
        # A second response to one request belongs to nobody.
        self._is_last = self._is_last or self._is_complete

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers are not passed on.
        if self._head is None:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._is_complete or status in _INFORMATIONAL:
            return
        if status not in _FINAL:
            self.abort()
            return
        framed = {name.lower() for name, _ in self._headers} & _FRAMING
        has_no_body = self._is_head or status in _WITHOUT_BODY
        self._head = ResponseHead(status, self._headers, has_no_body)
        self._ends_by_closing = not framed and not has_no_body
        self._is_last = self._is_last or not self._keeps_alive()
        # The parser does not know the method, and would wait for a body.
        self._is_complete = has_no_body

    def _keeps_alive(self) -> bool:
        words = [value.lower() for name, value in self._headers if name.lower() == b"connection"]
        if self._parser.get_http_version() == "1.0":
            return any(b"keep-alive" in word for word in words) and not self._ends_by_closing
        return not any(b"close" in word for word in words) and not self._ends_by_closing

    def on_body(self, body: bytes) -> None:
        if self._is_complete:
            # A body where none is allowed.
            self._is_last = True
            return
        self._body.append(body)
        self._waiting += len(body)
        if self._waiting > _HIGH_WATER and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._head is None:
            # An informational response; the final one follows.
            self._headers = []
            return
        self._is_complete = True


async def connect(connected: socket.socket) -> Upstream:
    """Speak HTTP over a connected socket."""
    _, upstream = await asyncio.get_running_loop().create_connection(Upstream, sock=connected)
    return upstream
