"""Deadlines for thousands of calls a second, watched by one timer."""

import asyncio
from types import TracebackType
from typing import Self

from hublet.core.clock import monotonic

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
        # When somebody else cancels the task too, the cancellation is theirs and goes on.
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
