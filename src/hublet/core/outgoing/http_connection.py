"""Client connection of HTTP/1.1 (httptools) to a stranger: one request at a time, its response read within limits.

Whatever a stranger sends that nobody asked for spoils the connection, and is never taken for the next response.
"""

import asyncio
from dataclasses import dataclass, field

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from hublet.core.clock import monotonic
from hublet.core.outgoing.timings import StageTimes

MAX_HEADERS = 100
MAX_HEADER_BYTES = 8190
# A server may send interim answers (102, 103); nobody needs more than a few.
MAX_INTERIM_RESPONSES = 16
# Besides a line of that length one read of the event loop may be held.
_MAX_LINE_BYTES = MAX_HEADER_BYTES + 16
# So much the buffers of the system take, whatever the other side does.
_MOST_SENT_AT_ONCE = 16_384
_FIRST_FINAL = 200
_SWITCHING_PROTOCOLS = 101
_WITHOUT_BODY = frozenset({_SWITCHING_PROTOCOLS, 204, 304})
_KEPT_HEADERS = {
    name.encode(): name
    for name in (
        *("retry-after", "location", "content-type"),
        *("content-encoding", "cache-control", "expires"),
        # For who reads in the log of deliveries why a target refused.
        *("www-authenticate", "server", "x-request-id"),
    )
}


class ExchangeLost(Exception):
    """The connection ended before the response did."""


class ResponseInvalid(Exception):
    """What came is not HTTP, or more than is read."""


@dataclass(slots=True)
class PartialResponse:
    """What has arrived so far; it stays when the rest does not come."""

    times: StageTimes
    keep_bytes: int
    read_bytes: int
    is_head_only: bool = False
    # Whether anything at all has arrived.
    has_begun: bool = False
    status: int | None = None
    headers: dict[str, bytes] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    body_bytes: int = 0


class HttpConnection(asyncio.Protocol):
    """A connection with at most one exchange at a time; reuse it only while it `is_free`."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self._loop = asyncio.get_running_loop()
        # None until the connection is made; nobody else has it before.
        self._transport: asyncio.Transport = None  # type: ignore[assignment]
        self._parser = HttpResponseParser(self)
        # Servers that are careless in these two ways are understood everywhere.
        self._parser.set_dangerous_leniencies(
            lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        # The response that somebody waits for, and how they are woken.
        self._response: PartialResponse | None = None
        self._waiter: asyncio.Future[None] | None = None
        # Whether the parser is between two responses.
        self._is_between = True
        self._is_spoilt = False
        self._spoke_unasked = False
        self._begin_head()
        self._interim = 0

    def _begin_head(self) -> None:
        # Bytes since a header or a part of a body was complete.
        self._line_bytes = 0
        self._headers = 0
        self._ends_by_closing = True

    @property
    def is_free(self) -> bool:
        """Tell whether it can take another request."""
        return (
            self._is_between
            and not self._is_spoilt
            and self._response is None
            and not self._transport.is_closing()
            # Of a request that was answered early some may still wait to be sent.
            and not self._transport.get_write_buffer_size()
        )

    async def exchange(self, request: bytes, response: PartialResponse) -> None:
        """Send a request and read its response. Raises ExchangeLost or ResponseInvalid."""
        if self._is_spoilt:
            # In the moment between connecting and now.
            raise ResponseInvalid if self._spoke_unasked else ExchangeLost
        self._response = response
        self._interim = 0
        waiter = self._waiter = self._loop.create_future()
        self._transport.write(request)
        if len(request) > _MOST_SENT_AT_ONCE and self._transport.get_extra_info("sslcontext"):
            # Whether all of it has left by then, a transport with TLS does not tell.
            self._is_spoilt = True
        try:
            await waiter
        except BaseException:
            # The response may come yet.
            self._is_spoilt = True
            self._response = None
            raise

    def close(self) -> None:
        self._is_spoilt = True
        self._transport.close()

    def abort(self) -> None:
        self._is_spoilt = True
        if self._transport is not None:
            self._transport.abort()

    def _finish(self) -> None:
        self._response = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._is_spoilt = True
        if self._response is not None and self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        self._response = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._response is None:
            # Nobody asked for it: it must not be taken for the next response.
            self._spoke_unasked = True
            self.abort()
            return
        self._line_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._fail(ResponseInvalid())
        if self._line_bytes > _MAX_LINE_BYTES:
            self._fail(ResponseInvalid())

    def eof_received(self) -> None:
        self._end(ExchangeLost())

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(ExchangeLost(), is_clean=exc is None)
        # It refers back to this, and a server collects garbage rarely.
        vars(self).pop("_parser", None)

    def _end(self, error: Exception, *, is_clean: bool = True) -> None:
        response = self._response
        self._is_spoilt = True
        if is_clean and response is not None and response.status and self._ends_by_closing:
            # RFC 9112, 6.3: without any framing the end of the connection is that of the body.
            self._finish()
        else:
            self._fail(error)

    def on_message_begin(self) -> None:
        self._is_between = False
        self._begin_head()
        if self._response is None:
            # A second response to one request belongs to nobody.
            self._is_spoilt = True
            return
        self._response.has_begun = True
        self._response.headers.clear()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._line_bytes = 0
        self._headers += 1
        if self._headers > MAX_HEADERS or len(name) + len(value) > MAX_HEADER_BYTES:
            raise ResponseInvalid
        response = self._response
        # Trailers are not kept.
        if response is None or response.status is not None:
            return
        name = name.lower()
        if name in _KEPT_HEADERS:
            response.headers.setdefault(_KEPT_HEADERS[name], value)
        elif name == b"content-length" or (
            name == b"transfer-encoding" and value.lower().rstrip().endswith(b"chunked")
        ):
            self._ends_by_closing = False

    def on_headers_complete(self) -> None:
        self._line_bytes = 0
        response = self._response
        if response is None:
            return
        status = self._parser.get_status_code()
        if status < _FIRST_FINAL and status != _SWITCHING_PROTOCOLS:
            self._interim += 1
            if self._interim > MAX_INTERIM_RESPONSES:
                raise ResponseInvalid
            return
        response.status = status
        response.times.answered = monotonic()
        if not self._parser.should_keep_alive() or status == _SWITCHING_PROTOCOLS:
            self._is_spoilt = True
        if response.is_head_only or status in _WITHOUT_BODY:
            # Should the parser wait for a body, the connection is not between two responses.
            self._finish()

    def on_body(self, body: bytes) -> None:
        self._line_bytes = 0
        response = self._response
        if response is None:
            # A body where none is allowed, or one that was too long.
            self._is_spoilt = True
            return
        response.body_bytes += len(body)
        if (room := response.keep_bytes - len(response.body)) > 0:
            response.body += body[:room]
        if response.body_bytes >= response.read_bytes:
            self._finish()

    def on_message_complete(self) -> None:
        self._is_between = True
        # An interim response is followed by another.
        if self._response is not None and self._response.status is not None:
            self._finish()
