"""Connections as the server reads them.

An answer may have its own: to break it off, or to speak something else than HTTP.
"""

import asyncio
from weakref import ReferenceType, ref

import httptools
from starlette.types import Scope
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from hublet.core.http.rendering import error_response
from hublet.core.http.zero_copy import ZeroCopyProtocol

# More than any client or server sends. Without an end a head would fill the memory, and be copied
# with every read.
LARGEST_HEAD = 1 << 18

_EXTENSION = "hublet.connection"
_HEAD_TOO_LARGE = 431
_LINGER_SECONDS = 1.0
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})


class Held:
    """The connection of one request."""

    __slots__ = ("_cycle", "_protocol")

    def __init__(self, protocol: "HeldProtocol", cycle: RequestResponseCycle) -> None:
        # The cycle holds the scope, and the scope holds this.
        self._protocol: ReferenceType[HeldProtocol] = ref(protocol)
        self._cycle: ReferenceType[RequestResponseCycle] = ref(cycle)

    def break_off(self) -> None:
        """Close it in the middle of an answer, so that nobody takes that for a whole one."""
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


class HeldProtocol(ZeroCopyProtocol):
    """HTTP as the server speaks it, with `hublet.connection` among the extensions.

    A head has a limit, and a request that asks to speak something else loses no body by it.
    """

    # What came behind the last request that is read here; None: there may be more of them.
    beyond: bytes | None = None
    # Bytes that have come since the end of a head, or a part of a body.
    _fruitless = 0
    _has_body_come = False
    _is_refused = False

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        super()._start_asgi_task(cycle, app)
        extensions = cycle.scope.setdefault("extensions", {})
        assert extensions is not None  # noqa: S101 - for the type checkers.
        extensions[_EXTENSION] = {"held": Held(self, cycle)}

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        if len(data) > LARGEST_HEAD - self._fruitless:
            self._read_to_limit(data)
            return
        if self.beyond is not None:
            self._keep(data)
            return
        cycle = self.cycle
        try:
            self.parser.feed_data(data)  # pyright: ignore[reportOptionalMemberAccess]
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        except httptools.HttpParserUpgrade as upgrade:
            self._read_beyond(data[upgrade.args[0] :])
        if self.cycle is cycle and not self._has_body_come:
            self._fruitless += len(data)
        elif self._fruitless or self._has_body_come:
            self._has_body_come, self._fruitless = False, 0

    def _read_to_limit(self, data: bytes) -> None:
        """Read what has an end before the limit, and only then the rest."""
        room = LARGEST_HEAD - self._fruitless
        self.data_received(data[:room])
        if self._fruitless >= LARGEST_HEAD:
            self._refuse()
        if not self.transport.is_closing():
            self.data_received(data[room:])

    def on_body(self, body: bytes) -> None:
        self._has_body_come = True
        super().on_body(body)

    def _read_beyond(self, rest: bytes) -> None:
        """Go on behind a head that asks for something else, where the parser sees no body.

        If it is answered in HTTP that ends the connection: what comes then may be anything.
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
        self.parser = httptools.HttpRequestParser(_Body(self))
        lines = [b"%b: %b\r\n" % each for each in framing]
        self.data_received(b"".join([b"POST / HTTP/1.1\r\n", *lines, b"\r\n", rest]))

    def _keep(self, data: bytes) -> None:
        """Keep what comes early for whoever takes over. Only who reads hears of the end."""
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
        response = error_response(
            f"The head of a request has at most {LARGEST_HEAD >> 10} KiB.",
            status=_HEAD_TOO_LARGE,
            headers={"connection": "close"},
        )
        lines = [b"%b: %b\r\n" % each for each in response.raw_headers]
        head = b"".join([STATUS_LINE[_HEAD_TOO_LARGE], *lines, b"\r\n"])
        self.transport.write(head + bytes(response.body))
        # Closed at once, with something unread, the answer might never arrive.
        self.loop.call_later(_LINGER_SECONDS, self.transport.close)


class _Body:
    """Hears from a parser of one body only."""

    def __init__(self, protocol: HeldProtocol) -> None:
        self._protocol = protocol

    def on_body(self, body: bytes) -> None:
        if self._protocol.beyond is None:
            self._protocol.on_body(body)

    def on_message_complete(self) -> None:
        if self._protocol.beyond is None:
            self._protocol.on_message_complete()
            self._protocol.beyond = b""


def find_held(scope: Scope) -> Held | None:
    """Return the connection of a request, if the server lets go of it."""
    found: Held | None = scope.get("extensions", {}).get(_EXTENSION, {}).get("held")
    return found
