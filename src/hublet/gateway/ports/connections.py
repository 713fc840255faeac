"""Connections to jobs: a cache of the routes to their attempts, and a pool of idle connections."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from hublet.core.clock import monotonic
from hublet.gateway.dialer import Dialer
from hublet.gateway.errors import (
    CannotJoinNetwork,
    JobElsewhere,
    NetworkUnreachable,
    NothingListens,
    PortNotListening,
)
from hublet.gateway.ports.upstream import Upstream, connect
from hublet.gateway.records import ReachableJob
from hublet.runtime.records import AttachPoint
from hublet.runtime.supervisor.runner_selection import RunnerAvailability

# Many servers close what was idle for five seconds: it is better to do so before them.
_IDLE_SECONDS = 4.0
_MAX_IDLE = 64

# A job, its attempt, and the port: another attempt is another server.
PoolKey = tuple[str, int, int]


class ConnectionPool:
    def __init__(self) -> None:
        self._idle: dict[PoolKey, list[Upstream]] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    def take(self, key: PoolKey) -> Upstream | None:
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

    def give_back(self, key: PoolKey, upstream: Upstream) -> None:
        """Keep it for the next request if its answer ended well, else close it."""
        idle = self._idle.setdefault(key, [])
        if not upstream.is_free or len(idle) >= _MAX_IDLE:
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


_MAX_ROUTES = 1000


class RouteCache:
    def __init__(self, availability: RunnerAvailability) -> None:
        self._availability = availability
        self._dialer = Dialer()
        self._kept: dict[tuple[str, int], AttachPoint] = {}

    async def connect(self, found: ReachableJob, port: int) -> Upstream:
        """Open a connection to a port of a job that runs here, or raise what is to be answered."""
        return await connect(await self._dial(found, port))

    def close(self) -> None:
        self._dialer.close()

    async def _dial(self, found: ReachableJob, port: int) -> socket.socket:
        try:
            return await self._dialer.dial(await self._inside(found), port)
        except NothingListens:
            self._kept.pop(found.place, None)
            raise PortNotListening(found.job.id, port) from None
        except CannotJoinNetwork as error:
            self._kept.pop(found.place, None)
            raise NetworkUnreachable(found.job.id, str(error)) from None

    async def _inside(self, found: ReachableJob) -> AttachPoint:
        kept = self._kept.get(found.place)
        if kept is not None and kept.process.lives():
            return kept
        inside = None
        if found.runner is not None and found.handle is not None:
            inside = await self._availability.attach_point(found.runner, found.handle)
        if inside is None:
            raise JobElsewhere(found.job.id)
        if len(self._kept) >= _MAX_ROUTES:
            self._kept.clear()
        self._kept[found.place] = inside
        return inside
