"""Connections to jobs that wait for the next request."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from hublet.core.clock import monotonic
from hublet.jobs.reaching.wire.upstream import Upstream, connect

# Many servers close what was idle for five seconds: it is better to do so before them.
_IDLE_SECONDS = 4.0
_MOST_IDLE = 64

# A job, its attempt, and the port: another attempt is another server.
Key = tuple[str, int, int]


class Pool:
    def __init__(self) -> None:
        self._idle: dict[Key, list[Upstream]] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    def take(self, key: Key) -> Upstream | None:
        """Return a connection that was used before; the one used last is the most alive."""
        idle = self._idle.get(key)
        while idle:
            upstream = idle.pop()
            if upstream.is_free:
                return upstream
            upstream.abort()
        return None

    async def open(self, dial: Callable[[], Awaitable[socket.socket]]) -> Upstream:
        return await connect(await dial())

    def give_back(self, key: Key, upstream: Upstream) -> None:
        """Keep it for the next request if its answer ended well, else close it."""
        idle = self._idle.setdefault(key, [])
        if not upstream.is_free or len(idle) >= _MOST_IDLE:
            upstream.abort()
            return
        idle.append(upstream)
        if self._sweeping is None:
            self._sweep_later()

    def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        for idle in self._idle.values():
            for upstream in idle:
                upstream.abort()
        self._idle.clear()

    def _sweep_later(self) -> None:
        self._sweeping = asyncio.get_running_loop().call_later(1.0, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        oldest = monotonic() - _IDLE_SECONDS
        for key, idle in list(self._idle.items()):
            kept = [each for each in idle if each.used_at > oldest and each.is_free]
            for upstream in idle:
                if upstream not in kept:
                    upstream.abort()
            if kept:
                self._idle[key] = kept
            else:
                del self._idle[key]
        if self._idle:
            self._sweep_later()
