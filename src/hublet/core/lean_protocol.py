"""HTTP protocol of uvicorn (httptools) that costs a request less; `receiver` serves with it too.

- A connection has one timer for its idle time, and not one for each response.
- The head of a response is checked and written in one pass.
- A whole response may be one message: see `WHOLE_RESPONSE`.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from typing import Any, cast
from urllib.parse import unquote

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

# Extension of ASGI, and type of its message: `status`, `head` (bytes of status line and header
# lines, all of them fit to be sent, with the length of the body), and `body`.
WHOLE_RESPONSE = "hublet.response"

_CLOSE = b"connection: close\r\n"
_CHUNKED = b"transfer-encoding: chunked\r\n"
_TOKEN_END = re.compile(rb"\s*,\s*")
_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"connection"})
_BODILESS = frozenset({204, 304})
# Names of headers that were found fit to be sent, in small letters. Few applications have more, but
# the ports of jobs pass on what they like.
_MOST_NAMES = 1000
_LONGEST_NAME = 64
_names: dict[bytes, bytes] = {}


class LeanCycle(RequestResponseCycle):
    """Request and response of uvicorn; the head of a response leaves with the first of its body."""

    _says_close = False
    _head = b""

    async def send(self, message: Any) -> None:
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        kind = message["type"]
        if kind == "http.response.body" and self.response_started and not self.response_complete:
            self._go_on(message.get("body", b""), more=message.get("more_body", False))
        elif kind == "http.response.start" and not self.response_started:
            self._start(message["status"], message.get("headers", ()))
        elif kind == WHOLE_RESPONSE and not self.response_started:
            self._send_whole(message["head"], message["body"])
        else:
            raise RuntimeError(f"It is not the turn of {kind}.")

    def _send_whole(self, head: bytes, body: bytes) -> None:
        self.response_started = True
        self.waiting_for_100_continue = False
        end = b"\r\n" if self.keep_alive else _CLOSE + b"\r\n"
        if self.default_headers:
            end = self._render(self.default_headers) + end
        is_head = self.scope["method"] == "HEAD"
        self.transport.write(head + end if is_head else b"".join((head, end, body)))
        self._finish()

    def _start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.response_started = True
        self.waiting_for_100_continue = False
        head = STATUS_LINE[status] + self._render([*self.default_headers, *headers])
        if not self.keep_alive and not self._says_close:
            head += _CLOSE
        is_bodiless = status in _BODILESS or self.scope["method"] == "HEAD"
        if self.chunked_encoding is None and not is_bodiless:
            self.chunked_encoding = True
            head += _CHUNKED
        self._head = head + b"\r\n"
        # A stream may be long about its first piece.
        asyncio.get_running_loop().call_soon(self.flush_head)

    def flush_head(self) -> None:
        """Write the head, if it has not left yet."""
        if self._head and not self.disconnected:
            self.transport.write(self._head)
        self._head = b""

    def _go_on(self, body: bytes, *, more: bool) -> None:
        if self.scope["method"] == "HEAD":
            self.expected_content_length = 0
            body = b""
        elif self.chunked_encoding:
            piece = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body = piece if more else piece + b"0\r\n\r\n"
        elif len(body) > self.expected_content_length:
            raise RuntimeError("Response content longer than Content-Length")
        else:
            self.expected_content_length -= len(body)
        head, self._head = self._head, b""
        if head and body:
            # In one call of the system, which costs more than all else here.
            self.transport.writelines((head, body))
        elif head or body:
            # An empty piece would never leave the buffer of asyncio (Python 3.12 and 3.13).
            self.transport.write(head or body)
        if not more:
            if self.expected_content_length:
                raise RuntimeError("Response content shorter than Content-Length")
            self._finish()

    def _finish(self) -> None:
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()

    def _render(self, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        """Return the lines of headers. Raises RuntimeError where one would break the head."""
        parts: list[bytes] = []
        for name, value in headers:
            known = _names.get(name) or _check_name(name)
            # What is printable needs no further look, and that is nearly everything.
            if not (value.isascii() and value.decode().isprintable()):
                _check_value(value)
            if known in _FRAMING:
                self._note_framing(known, value)
            parts += known, b": ", value, b"\r\n"
        return b"".join(parts)

    def _note_framing(self, name: bytes, value: bytes) -> None:
        if name == b"content-length":
            if self.chunked_encoding is None:
                self.expected_content_length = int(value.decode())
                self.chunked_encoding = False
        elif name == b"transfer-encoding":
            if value.lower() == b"chunked":
                self.expected_content_length = 0
                self.chunked_encoding = True
        elif b"close" in _TOKEN_END.split(value.strip().lower()):
            self.keep_alive, self._says_close = False, True


def _check_name(name: bytes) -> bytes:
    if HEADER_RE.search(name):
        raise RuntimeError("Invalid HTTP header name.")
    known = bytes(name).lower()
    if len(_names) < _MOST_NAMES and len(name) <= _LONGEST_NAME:
        _names[bytes(name)] = known
    return known


def _check_value(value: bytes) -> None:
    if HEADER_VALUE_RE.search(value):
        raise RuntimeError("Invalid HTTP header value.")


class LeanProtocol(HttpToolsProtocol):
    """HTTP protocol of uvicorn with the extension `hublet.response`.

    Not for the options of uvicorn that nobody here uses: `limit_concurrency`, `reset_contextvars`.
    """

    # When the last response ended, on the clock of the loop; None while there is a request.
    _idle_since: float | None = None
    # Returns the whole response to a request, if nothing has to be waited for.
    answer_now: Callable[[Any], bytes | None] | None = None
    # How many requests of what was read may be answered so: others want their turn as well.
    _left_now = 0
    _answer: bytes | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        self._idle_since, self._left_now = None, 1
        try:
            self.parser.feed_data(data)  # pyright: ignore[reportOptionalMemberAccess]
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        except httptools.HttpParserUpgrade:
            if self._should_upgrade():
                self.handle_websocket_upgrade()

    def on_headers_complete(self) -> None:
        parser: Any = self.parser
        scope = self.scope
        http_version = parser.get_http_version()
        scope["method"] = parser.get_method().decode("ascii")
        if http_version != "1.1":
            scope["http_version"] = http_version
        if parser.should_upgrade() and self._should_upgrade():
            return
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        scope["path"] = self.root_path + (unquote(path) if "%" in path else path)
        scope["raw_path"] = self.root_path.encode("ascii") + url.path
        scope["query_string"] = url.query or b""
        scope["extensions"] = {WHOLE_RESPONSE: {}}
        before, app = self.cycle, cast("ASGI3Application", self.app)
        is_first = before is None or before.response_complete
        if is_first and self._left_now and self._find_answer(scope):
            return
        self.cycle = LeanCycle(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=http_version != "1.0" and parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if is_first:
            self._start_asgi_task(self.cycle, app)
        else:
            # Requests that came at once are answered one after the other.
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, app))

    def _find_answer(self, scope: Any) -> bool:
        """Look for a response that is sent as soon as the request has ended; False: there is none.

        Such a request has no body and does not end its connection, and gets no task of its own.
        """
        self._left_now -= 1
        # With HTTP/1.0 every response ends its connection, and says so.
        is_lasting = scope["http_version"] != "1.0"
        if self.answer_now is not None and is_lasting and not self.flow.write_paused:
            parser: Any = self.parser
            if parser.should_keep_alive() and not parser.should_upgrade():
                self._answer = self.answer_now(scope)
        return self._answer is not None

    def on_message_complete(self) -> None:
        if self._answer is None:
            super().on_message_complete()
            return
        answer, self._answer = self._answer, None
        self.transport.write(answer)
        self.on_response_complete()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._look_later(self.timeout_keep_alive)

    def _look_later(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it was idle for long enough, or look again when it may be."""
        self.timeout_keep_alive_task = None
        if self._idle_since is None:
            return
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._look_later(left)
        elif not self.transport.is_closing():
            self.transport.close()
