"""Open connections to jobs, closed when whoever opened them may not any more."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from hublet.core.clock import monotonic
from hublet.core.database import DatabaseUnavailable
from hublet.core.errors import HubError
from hublet.core.logs import get_logger
from hublet.gateway.ports.authorization import Credentials, PortAuthorizer
from hublet.gateway.records import JobPort

log = get_logger("jobs")

IDLE_SECONDS = 3600.0
_CHECK_SECONDS = 0.25
# Some rights end without a sign, such as those of a session; and a sign may be lost.
_BACK_STOP_SECONDS = 2.0
_STOP_SECONDS = 1.0


@dataclass(slots=True, eq=False, kw_only=True)
class OpenConnection:
    """One request that is being answered, or a connection that was taken over."""

    target: JobPort
    shown: Credentials
    # The attempt it leads to: what another one listens on is something else.
    attempt: int
    cut: Callable[[], None] = field(default=lambda: None)
    # When something last came from either side.
    used_at: Callable[[], float] = field(default=monotonic)
    # From then on nothing more may be asked for it.
    is_closed: bool = False

    def close_soon(self) -> None:
        """Let it end by itself for a moment, because the hub stops."""
        asyncio.get_running_loop().call_later(_STOP_SECONDS, self.close)

    def close(self) -> None:
        self.is_closed = True
        self.cut()


class OpenConnections:
    """Looked at together, a few times a second at most, and only while there are some."""

    def __init__(self, gate: PortAuthorizer) -> None:
        self._gate = gate
        self._ends: set[OpenConnection] = set()
        self._watching: asyncio.Task[None] | None = None

    @contextmanager
    def holding(self, end: OpenConnection) -> Iterator[None]:
        self._ends.add(end)
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(), name="open ports")
        try:
            yield
        finally:
            self._ends.discard(end)

    async def stop(self) -> None:
        for end in list(self._ends):
            end.close()
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching

    async def _watch(self) -> None:
        rings, looked_at = self._gate.rings, monotonic()
        while self._ends:
            await asyncio.sleep(_CHECK_SECONDS)
            is_time = monotonic() >= looked_at + _BACK_STOP_SECONDS
            if rings == self._gate.rings and not is_time:
                continue
            # Noted before the look: what changes during it is looked at once more.
            rings, looked_at = self._gate.rings, monotonic()
            try:
                await self._look()
            except DatabaseUnavailable as error:
                log.warning("open ports not looked at", reason=error.reason)

    async def _look(self) -> None:
        oldest = monotonic() - IDLE_SECONDS
        alike: dict[tuple[JobPort, Credentials], list[OpenConnection]] = {}
        for end in list(self._ends):
            if end.used_at() < oldest:
                end.close()
            else:
                alike.setdefault((end.target, end.shown), []).append(end)
        for (target, shown), ends in alike.items():
            attempt = await self._admitted_to(target, shown)
            for end in ends:
                if end.attempt != attempt:
                    end.close()

    async def _admitted_to(self, target: JobPort, shown: Credentials) -> int | None:
        """Return the attempt that this leads to now; None: nowhere."""
        try:
            return (await self._gate.admit(target, shown)).found.job.attempt
        except DatabaseUnavailable:
            raise
        except HubError:
            return None
