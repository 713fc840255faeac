"""Pool of kept connections: for each scheme, host and port so many at a time; what waits longest is next."""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from hublet.core.clock import monotonic
from hublet.core.outgoing.dialer import Dialer
from hublet.core.outgoing.http_connection import HttpConnection
from hublet.core.outgoing.urls import Destination

IDLE_SECONDS = 15.0
LOOK_SECONDS = 5.0


@dataclass(slots=True)
class _HostConnections:
    """The connections to one host, and who waits for one."""

    used: int = 0
    # The one that was used last is used next, so that the others may be closed.
    idle: list[HttpConnection] = field(default_factory=list)
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


class ConnectionPool:
    def __init__(self, dialer: Dialer, *, per_host: int) -> None:
        self._dialer = dialer
        self._per_host = per_host
        self._hosts: dict[Destination, _HostConnections] = {}
        self._used: dict[HttpConnection, _HostConnections] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def acquire(self, target: Destination, *, is_new: bool = False) -> HttpConnection:
        """Return a connection, one that was kept if there is any; to be released in any case.

        Raises OSError when a new one cannot be made.
        """
        host = self._hosts.get(target)
        if host is None:
            host = self._hosts[target] = _HostConnections()
        if host.used >= self._per_host:
            await self._wait_for_turn(target, host)
        else:
            host.used += 1
        while host.idle and not is_new:
            connection = host.idle.pop()
            if connection.is_free:
                self._used[connection] = host
                return connection
            connection.close()
        if host.used + len(host.idle) > self._per_host:
            # A new one was wanted where others lie idle.
            host.idle.pop(0).close()
        if self._is_closed:
            self._leave(target, host)
            # What the close cut off must not go out again.
            raise ConnectionAbortedError
        try:
            connection = await self._dialer.connect(target)
        except BaseException:
            self._leave(target, host)
            raise
        self._used[connection] = host
        return connection

    def release(self, target: Destination, connection: HttpConnection) -> None:
        """Keep a connection for others, or close it if it is not as it should be."""
        host = self._used.pop(connection)
        if connection.is_free and not self._is_closed:
            connection.idle_since = monotonic()
            host.idle.append(connection)
            if self._timer is None:
                self._look_later()
        else:
            connection.abort()
        self._leave(target, host)

    def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for host in self._hosts.values():
            for connection in host.idle:
                connection.close()
            host.idle.clear()
        for connection in self._used:
            connection.abort()

    async def _wait_for_turn(self, target: Destination, host: _HostConnections) -> None:
        turn = asyncio.get_running_loop().create_future()
        host.waiting.append(turn)
        try:
            await turn
        except BaseException:
            # Whoever gives up in the moment of their turn leaves it to the next.
            if turn.done() and not turn.cancelled():
                self._leave(target, host)
            else:
                turn.cancel()
            raise

    def _leave(self, target: Destination, host: _HostConnections) -> None:
        """Let the next one in, who counts in the place of this one."""
        while host.waiting:
            turn = host.waiting.popleft()
            # Many who wait may give up together, and none of them has run since.
            if not turn.done():
                turn.set_result(None)
                return
        host.used -= 1
        self._forget_if_unused(target, host)

    def _forget_if_unused(self, target: Destination, host: _HostConnections) -> None:
        if not (host.used or host.idle):
            del self._hosts[target]

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """Close what has been idle for long; rest while nothing is idle."""
        self._timer = None
        oldest = monotonic() - IDLE_SECONDS
        for target, host in list(self._hosts.items()):
            for connection in host.idle:
                if connection.idle_since <= oldest or not connection.is_free:
                    connection.close()
            host.idle = [each for each in host.idle if each.is_free]
            self._forget_if_unused(target, host)
        if any(host.idle for host in self._hosts.values()):
            self._look_later()
