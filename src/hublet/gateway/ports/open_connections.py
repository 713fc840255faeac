"""Open connections to jobs; each is closed when its client loses the right to it."""

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
# Not every lost right is notified, such as that of a session, and a notification may be lost.
_BACK_STOP_SECONDS = 2.0
_STOP_SECONDS = 1.0


@dataclass(slots=True, eq=False, kw_only=True)
class OpenConnection:
    """A request that is being answered, or a connection after an upgrade."""

    target: JobPort
    credentials: Credentials
    # The attempt that it goes to: another attempt is another server.
    attempt: int
    cut: Callable[[], None] = field(default=lambda: None)
    # When the last byte came from either side.
    used_at: Callable[[], float] = field(default=monotonic)
    # A closed one may not be used for another request.
    is_closed: bool = False

    def close_soon(self) -> None:
        """Close it after a moment, in which it may end by itself, because the hub stops."""
        asyncio.get_running_loop().call_later(_STOP_SECONDS, self.close)

    def close(self) -> None:
        self.is_closed = True
        self.cut()


class OpenConnections:
    """All open connections; checked together, a few times a second at most."""

    def __init__(self, authorizer: PortAuthorizer) -> None:
        self._authorizer = authorizer
        self._connections: set[OpenConnection] = set()
        self._watching: asyncio.Task[None] | None = None

    @contextmanager
    def tracked(self, connection: OpenConnection) -> Iterator[None]:
        self._connections.add(connection)
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(), name="open ports")
        try:
            yield
        finally:
            self._connections.discard(connection)

    async def stop(self) -> None:
        for connection in list(self._connections):
            connection.close()
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching

    async def _watch(self) -> None:
        wakes, checked_at = self._authorizer.wakes, monotonic()
        while self._connections:
            await asyncio.sleep(_CHECK_SECONDS)
            is_due = monotonic() >= checked_at + _BACK_STOP_SECONDS
            if wakes == self._authorizer.wakes and not is_due:
                continue
            # Noted before the check: a change during it causes another check.
            wakes, checked_at = self._authorizer.wakes, monotonic()
            try:
                await self._recheck()
            except DatabaseUnavailable as error:
                log.warning("open ports not looked at", reason=error.reason)

    async def _recheck(self) -> None:
        oldest = monotonic() - IDLE_SECONDS
        by_credentials: dict[tuple[JobPort, Credentials], list[OpenConnection]] = {}
        for connection in list(self._connections):
            if connection.used_at() < oldest:
                connection.close()
            else:
                by_credentials.setdefault((connection.target, connection.credentials), []).append(
                    connection
                )
        for (target, credentials), connections in by_credentials.items():
            attempt = await self._current_attempt(target, credentials)
            for connection in connections:
                if connection.attempt != attempt:
                    connection.close()

    async def _current_attempt(self, target: JobPort, credentials: Credentials) -> int | None:
        """Return the attempt that these credentials open now; None: none."""
        try:
            return (await self._authorizer.admit(target, credentials)).reachable.job.attempt
        except DatabaseUnavailable:
            raise
        except HubError:
            return None
