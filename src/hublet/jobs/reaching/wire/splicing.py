"""Two connections as one: what comes from either side goes to the other, byte by byte."""

import asyncio
from dataclasses import dataclass, field

from hublet.core.clock import monotonic


@dataclass(slots=True, eq=False)
class Splice:
    """Ends when both sides have ended: what one said last still reaches the other."""

    done: asyncio.Event = field(default_factory=asyncio.Event)
    used_at: float = field(default_factory=monotonic)
    sides: list["_Side"] = field(default_factory=list)

    def join(self, visitor: asyncio.Transport, job: asyncio.Transport) -> None:
        """Take over both connections; their own protocols hear only of the end."""
        near, far = _Side(self, visitor), _Side(self, job)
        near.other, far.other = far, near
        self.sides = [near, far]
        for side in self.sides:
            side.begin()

    def abort(self) -> None:
        for side in self.sides:
            side.transport.abort()
        self.done.set()


class _Side(asyncio.Protocol):
    other: "_Side"

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
