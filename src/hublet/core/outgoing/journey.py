"""When one exchange reached each of its stages."""

from contextvars import ContextVar
from dataclasses import dataclass

from hublet.core.clock import monotonic
from hublet.core.outgoing.records import Timings


@dataclass(slots=True)
class Journey:
    """Stages on the monotonic clock, in seconds; None for one that was not reached.

    The places that know a stage (resolver, socket, TLS context) are called by aiohttp and are
    handed nothing of ours. They find the journey in the context of the sending task, which
    costs a tenth of what aiohttp's own tracing does.
    """

    started: float
    name_asked: float | None = None
    name_known: float | None = None
    dialled: float | None = None
    tls_begun: float | None = None
    connected: float | None = None
    answered: float | None = None

    @property
    def reused(self) -> bool:
        """Whether the connection was there before."""
        return self.connected is not None and self.dialled is None

    def timings(self) -> Timings:
        return Timings(
            dns=_micros(self.name_asked, self.name_known),
            connect=_micros(self.dialled, self.tls_begun or self.connected),
            tls=_micros(self.tls_begun, self.connected),
            first_byte=_micros(self.connected, self.answered),
            total=round((monotonic() - self.started) * 1e6),
        )


def _micros(begin: float | None, end: float | None) -> int | None:
    return None if begin is None or end is None else round((end - begin) * 1e6)


_current: ContextVar[Journey | None] = ContextVar("hublet-outgoing-journey", default=None)


def begin() -> Journey:
    journey = Journey(started=monotonic())
    _current.set(journey)
    return journey


def mark(stage: str) -> None:
    """Note that a stage is reached; the first time counts, as when several addresses are tried."""
    journey = _current.get()
    if journey is not None and getattr(journey, stage) is None:
        setattr(journey, stage, monotonic())
