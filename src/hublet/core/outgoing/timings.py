"""Timings of one outgoing call: when it reached each of its stages, and its deadline."""

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from hublet.core.clock import monotonic
from hublet.core.outgoing.records import Timings


@dataclass(slots=True)
class StageTimes:
    """Stages on the monotonic clock, in seconds; None for one that was not reached.

    The places that know a stage (resolver, socket, TLS context) are called by aiohttp and are
    handed nothing of ours. They find these times in the context of the sending task, which
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


_current: ContextVar[StageTimes | None] = ContextVar("hublet-outgoing-times", default=None)


def start_timing() -> StageTimes:
    times = StageTimes(started=monotonic())
    _current.set(times)
    return times


def mark_stage(stage: str) -> None:
    """Note that a stage is reached; the first time counts, as when several addresses are tried."""
    times = _current.get()
    if times is not None and getattr(times, stage) is None:
        setattr(times, stage, monotonic())


TICK_SECONDS = 0.05


class Deadline:
    """As `asyncio.timeout`, and at a fifth of its cost, up to a tick late."""

    __slots__ = ("_cancelling", "_expired", "_task", "_watch", "at")

    def __init__(self, watch: "DeadlineWatch", seconds: float) -> None:
        self._watch = watch
        self.at = monotonic() + seconds

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("A deadline holds for a task.")
        self._task = task
        self._cancelling = task.cancelling()
        self._expired = False
        self._watch.add(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watch.remove(self)
        # When the task is cancelled from elsewhere too, that cancellation goes on.
        if (
            self._expired
            and self._task.uncancel() <= self._cancelling
            and kind is asyncio.CancelledError
        ):
            raise TimeoutError from error

    def expire(self) -> None:
        self._expired = True
        self._task.cancel()


class DeadlineWatch:
    """Looks every tick for deadlines that have passed; rests while there are none."""

    def __init__(self) -> None:
        self._open: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None

    def within(self, seconds: float) -> Deadline:
        return Deadline(self, seconds)

    def add(self, deadline: Deadline) -> None:
        self._open.add(deadline)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._look)

    def remove(self, deadline: Deadline) -> None:
        self._open.discard(deadline)

    def _look(self) -> None:
        self._timer = None
        now = monotonic()
        for deadline in [each for each in self._open if each.at <= now]:
            self._open.discard(deadline)
            deadline.expire()
        if self._open:
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._look)
