"""Server protocol (uvicorn, httptools) with extensions: direct bodies, and connection takeover.

With `hublet.body` and `hublet.send` large bodies pass by the server. With `hublet.connection` a
response may abort its connection, or take it over for another protocol.
"""

import asyncio
import fcntl
import sys
import termios
from collections.abc import Callable
from math import inf
from typing import Any, cast
from weakref import ReferenceType, ref

import httptools
from starlette.types import Scope
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from hublet.core.clock import monotonic
from hublet.core.config import ServerSettings
from hublet.core.errors import HubError
from hublet.core.http.connection_guard import ClientClock, ConnectionGuard, Phase
from hublet.core.http.exchange import Exchange
from hublet.core.http.request_bodies import RECEIVER_EXTENSION, BodySocket, DirectReceiver
from hublet.core.http.response_bodies import SENDER_EXTENSION, DirectSender
from hublet.core.lean_protocol import LeanCycle, LeanProtocol


class ZeroCopyProtocol(LeanProtocol):
    """HTTP protocol of uvicorn with the extension `hublet.send`."""

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        # With TLS the bytes must pass through this process.
        if cycle.scope["method"] == "GET" and self.scheme == "http":
            sender = DirectSender(cast("LeanCycle", cycle))
            cast("Any", cycle.scope)["extensions"][SENDER_EXTENSION] = {"sender": sender}
        super()._start_asgi_task(cycle, app)

    def shutdown(self) -> None:
        super().shutdown()
        exchange = self.cycle.scope.get("exchange") if self.cycle else None
        if isinstance(exchange, Exchange) and exchange.on_stop is not None:
            exchange.on_stop()


# More than any client or server sends. Without an end a head would fill the memory, and be copied
# with every read.
MAX_HEAD_BYTES = 1 << 18

_CONNECTION_EXTENSION = "hublet.connection"
_HEAD_TOO_LARGE = 431
_REQUEST_TIMEOUT = 408
_SLOW_HEAD = "The head of the request took too long to arrive."
_SLOW_BODY = "The body of the request arrives too slowly."
_LINGER_SECONDS = 1.0
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})
_BODY_METHODS = frozenset({"PATCH", "POST", "PUT"})
# With one of them it is not the length alone that tells where a body ends.
_OTHER_ENDS = frozenset({b"transfer-encoding", b"upgrade"})


class HeldConnection:
    """The connection of one request."""

    __slots__ = ("_cycle", "_protocol")

    def __init__(self, protocol: "ServerProtocol", cycle: RequestResponseCycle) -> None:
        # The cycle holds the scope, and the scope holds this.
        self._protocol: ReferenceType[ServerProtocol] = ref(protocol)
        self._cycle: ReferenceType[RequestResponseCycle] = ref(cycle)

    def break_off(self) -> None:
        """Close it in the middle of a response, so that nobody takes that for a whole one."""
        cycle = self._cycle()
        if cycle is not None and not cycle.disconnected:
            cycle.disconnected = True
            cycle.transport.abort()

    def take_over(self) -> tuple[asyncio.Transport, bytes] | None:
        """Return the connection, and what was read of it beyond the request; None: it is gone.

        It does not read until its new owner wants it to. The server still closes it when it
        stops, so its own protocol must hear of the end.
        """
        cycle, protocol = self._cycle(), self._protocol()
        if cycle is None or protocol is None or cycle.disconnected or cycle.response_started:
            return None
        if protocol.beyond is None or cycle.transport.is_closing():
            return None
        cycle.response_started = cycle.response_complete = True
        protocol.flow.pause_reading()
        return cycle.transport, protocol.beyond

    def allow_slow_body(self) -> None:
        """Let the body take its time: another server reads it, and judges it by its own rules."""
        if (protocol := self._protocol()) is not None:
            protocol.may_body_be_slow = True


class ServerProtocol(ZeroCopyProtocol):
    """HTTP protocol of uvicorn with the extension `hublet.connection`, and a guard.

    The head of a request has a limit, and a request to upgrade keeps its body.
    """

    clock: ClientClock
    may_body_be_slow = False
    # What of a response had not left when the guard looked last.
    _unsent = inf
    # What came behind the last request that is read here; None: there may be more of them.
    beyond: bytes | None = None
    # Bytes that have come since the end of a head, or a part of a body.
    _fruitless = 0
    _has_body_come = False
    # Whether one of the requests that came was answered at once.
    _has_head_come = False
    _is_refused = False
    # Bytes of a body that the parser has seen, and those of another that it shall not see.
    _seen = 0
    _unread = 0
    _diversion: BodySocket | None = None

    def __init__(
        self,
        *args: Any,
        guard: ConnectionGuard | None = None,
        answer_now: Callable[[Any], bytes | None] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._guard = guard or ConnectionGuard(ServerSettings())
        self.answer_now = answer_now

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.clock = ClientClock(self._guard.settings, monotonic())
        try:
            self._guard.admit(self, descriptor=transport.get_extra_info("socket").fileno())
        except HubError as error:
            self._write_error(error.message, status=error.status)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.release(self)
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        super()._start_asgi_task(cycle, app)
        extensions = cast("Any", cycle.scope)["extensions"]
        extensions[_CONNECTION_EXTENSION] = {"held": HeldConnection(self, cycle)}
        # With TLS the bytes must pass through the transport.
        if cycle.scope["method"] in _BODY_METHODS and self.scheme == "http":
            extensions[RECEIVER_EXTENSION] = {"receiver": DirectReceiver(self, cycle)}

    def data_received(self, data: bytes) -> None:
        self._idle_since = None
        self._left_now = 0 if self._guard.is_draining else 1
        if self._unread:
            self._skip_unread(data)
            return
        if self.clock.phase is Phase.idle:
            self.clock.await_head(monotonic())
        if len(data) > MAX_HEAD_BYTES - self._fruitless:
            self._read_to_limit(data)
            return
        if self.beyond is not None:
            self._keep(data)
            return
        cycle = self.cycle
        self._parse(data)
        if self.cycle is cycle and not self._has_body_come and not self._has_head_come:
            self._fruitless += len(data)
        else:
            self._has_body_come = self._has_head_come = False
            self._fruitless = 0

    def _parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)  # pyright: ignore[reportOptionalMemberAccess]
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        except httptools.HttpParserUpgrade as upgrade:
            self._read_beyond(data[upgrade.args[0] :])

    def _read_to_limit(self, data: bytes) -> None:
        """Read what has an end before the limit, and only then the rest."""
        room = MAX_HEAD_BYTES - self._fruitless
        self.data_received(data[:room])
        if self._fruitless >= MAX_HEAD_BYTES:
            self._refuse()
        if not self.transport.is_closing():
            self.data_received(data[room:])

    def on_headers_complete(self) -> None:
        self.may_body_be_slow = False
        self._seen = 0
        super().on_headers_complete()
        if self._answer is not None:
            return
        self.clock.await_body(monotonic())
        if self._guard.is_draining and self.cycle is not None:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._has_body_come = True
        self._seen += len(body)
        self.clock.count(len(body), monotonic())
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._answer is not None:
            super().on_message_complete()
            self.clock.await_request(monotonic())
            self._has_head_come = True
            return
        super().on_message_complete()
        if self.cycle.response_complete:
            # It was answered before the body ended.
            self.clock.await_head(monotonic())
        else:
            self.clock.stop()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.clock.phase is Phase.response and self.cycle.response_complete:
            self.clock.await_request(monotonic())

    def count_missing(self, cycle: RequestResponseCycle) -> int:
        """Return how many bytes of a body are still to come; 0 where its end is to be found."""
        if self.cycle is not cycle or not cycle.more_body or self.transport.is_closing():
            return 0
        headers = dict(self.headers)
        length = headers.get(b"content-length", b"")
        if not length.isdigit() or not _OTHER_ENDS.isdisjoint(headers):
            return 0
        return int(length) - self._seen

    def divert(self, body: BodySocket) -> None:
        """Read no more: what is missing of the body is taken from the socket itself."""
        self.flow.pause_reading()
        self._diversion = body

    def count_diverted(self, size: int) -> None:
        self.clock.count(size, monotonic())

    def end_diversion(self, *, unread: int) -> None:
        """Read on, after a body that was taken up to so many bytes before its end."""
        self._diversion = None
        if self.cycle.disconnected or self.transport.is_closing():
            return
        # The old one still waits for the body.
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._unread = unread
        if not unread:
            self.on_message_complete()
        self.flow.resume_reading()

    def _skip_unread(self, data: bytes) -> None:
        """Drop what is left of a body that was refused; read what follows it."""
        count = min(len(data), self._unread)
        self._unread -= count
        self.clock.count(count, monotonic())
        if not self._unread:
            self.on_message_complete()
        if count < len(data):
            self.data_received(data[count:])

    def is_held_up(self) -> bool:
        if self._diversion is not None:
            return self._diversion.is_held_up()
        if self.clock.phase is Phase.body:
            is_asked = not self.cycle.waiting_for_100_continue
            return self.flow.read_paused or self.may_body_be_slow or not is_asked
        before, self._unsent = self._unsent, self._count_unsent() or inf
        return self._unsent < before

    def _count_unsent(self) -> int:
        if not (unsent := self.transport.get_write_buffer_size()):
            return 0
        # The kernel takes large pieces, and may be long about one for a slow reader.
        socket = self.transport.get_extra_info("socket").fileno()
        queued = fcntl.ioctl(socket, termios.TIOCOUTQ, bytes(4))
        return unsent + int.from_bytes(queued, sys.byteorder)

    def evict(self) -> None:
        self.clock.stop()
        self.transport.abort()

    def cut(self) -> None:
        is_body, cycle = self.clock.phase is Phase.body, self.cycle
        is_answering = is_body and cycle.response_started and not cycle.response_complete
        if is_answering or self.transport.is_closing():
            # Nobody shall take this for a whole response; or nobody has taken the last one.
            self.evict()
            return
        if is_body and not cycle.response_started:
            self._write_error(_SLOW_BODY, status=_REQUEST_TIMEOUT)
        elif self.clock.phase is Phase.head and self._fruitless:
            self._write_error(_SLOW_HEAD, status=_REQUEST_TIMEOUT)
        self.transport.close()

    def _read_beyond(self, rest: bytes) -> None:
        """Read on after a head that requests an upgrade, where the parser sees no body.

        An HTTP response to it closes the connection: what follows may be anything.
        """
        if self.beyond is not None:
            return
        self.cycle.keep_alive, self._fruitless = False, 0
        framing = [each for each in self.headers if each[0] in _FRAMING and each[1].strip(b" 0")]
        if not framing:
            self.beyond = b""
            self._keep(rest)
            return
        self.cycle.more_body = True
        self.cycle.message_event.clear()
        self.clock.await_body(monotonic())
        self.parser = httptools.HttpRequestParser(_BodyCallbacks(self))
        lines = [b"%b: %b\r\n" % each for each in framing]
        self.data_received(b"".join([b"POST / HTTP/1.1\r\n", *lines, b"\r\n", rest]))

    def _keep(self, data: bytes) -> None:
        """Keep early data for the protocol that takes over. Only a reader learns of the end."""
        if self._is_refused:
            return
        self.beyond = (self.beyond or b"") + data
        if len(self.beyond) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()

    def _refuse(self) -> None:
        self.beyond, self._is_refused, self._fruitless = b"", True, 0
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering or self.scope is None or "method" in self.scope:
            # It is not a head, or not its turn.
            self.transport.close()
            return
        sentence = f"The head of a request has at most {MAX_HEAD_BYTES >> 10} KiB."
        self._write_error(sentence, status=_HEAD_TOO_LARGE)
        # Closed at once, with something unread, the answer might never arrive.
        self.loop.call_later(_LINGER_SECONDS, self.transport.close)

    def _write_error(self, sentence: str, *, status: int) -> None:
        """Write a response of the server itself, the last one on its connection."""
        # The protocol is there before the framework, with which this one is written.
        from hublet.core.http.error_responses import error_response  # noqa: PLC0415 - as above

        response = error_response(sentence, status=status, headers={"connection": "close"})
        lines = [b"%b: %b\r\n" % each for each in response.raw_headers]
        head = b"".join([STATUS_LINE[status], *lines, b"\r\n"])
        self.transport.write(head + bytes(response.body))


class _BodyCallbacks:
    """Callbacks of a parser that reads one body only."""

    def __init__(self, protocol: ServerProtocol) -> None:
        self._protocol = protocol

    def on_body(self, body: bytes) -> None:
        if self._protocol.beyond is None:
            self._protocol.on_body(body)

    def on_message_complete(self) -> None:
        if self._protocol.beyond is None:
            self._protocol.on_message_complete()
            self._protocol.beyond = b""


def find_connection(scope: Scope) -> HeldConnection | None:
    """Return the connection of a request, if the server hands it over."""
    connection: HeldConnection | None = (
        scope.get("extensions", {}).get(_CONNECTION_EXTENSION, {}).get("held")
    )
    return connection
