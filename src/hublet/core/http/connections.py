"""Lets an answer have its connection: to break it off, or to speak something else than HTTP."""

import asyncio
from weakref import ReferenceType, ref

import httptools
from starlette.types import Scope
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from hublet.core.http.zero_copy import ZeroCopyProtocol

_EXTENSION = "hublet.connection"


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
        cycle.response_started = cycle.response_complete = True
        return cycle.transport, protocol.beyond


class HeldProtocol(ZeroCopyProtocol):
    """HTTP as the server speaks it, with `hublet.connection` among the extensions."""

    # What came behind a request that asks to speak something else.
    beyond = b""

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        super()._start_asgi_task(cycle, app)
        extensions = cycle.scope.setdefault("extensions", {})
        assert extensions is not None  # noqa: S101 - for the type checkers.
        extensions[_EXTENSION] = {"held": Held(self, cycle)}

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)  # pyright: ignore[reportOptionalMemberAccess]
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        except httptools.HttpParserUpgrade as upgrade:
            # Nothing more is read until it is known what is spoken. An answer in HTTP ends it:
            # the parser would not go on.
            self.beyond = data[upgrade.args[0] :]
            self.flow.pause_reading()
            if self.cycle is not None:
                self.cycle.keep_alive = False


def find_held(scope: Scope) -> Held | None:
    """Return the connection of a request, if the server lets go of it."""
    found: Held | None = scope.get("extensions", {}).get(_EXTENSION, {}).get("held")
    return found
