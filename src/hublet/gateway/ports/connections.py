"""Connections to jobs: a cache of the routes to their attempts, and a pool of idle connections."""

import asyncio
import socket

from hublet.core.clock import monotonic
from hublet.gateway.dialer import Dialer
from hublet.gateway.errors import (
    CannotJoinNetwork,
    JobElsewhere,
    NetworkUnreachable,
    NothingListens,
    PortNotListening,
)
from hublet.gateway.ports.authorization import Credentials
from hublet.gateway.ports.upstream import Upstream, connect
from hublet.gateway.records import ReachableJob, RemoteJobs, TunnelOrder
from hublet.runtime.records import AnyAttachPoint, AttachPoint
from hublet.runtime.supervisor.runner_selection import RunnerAvailability

# Many servers close connections after five idle seconds: the hub does so before them.
_IDLE_SECONDS = 4.0
_MAX_IDLE = 64
_MAX_ROUTES = 1000

# Job, attempt and port: another attempt is another server.
PoolKey = tuple[str, int, int]


class ConnectionPool:
    """Pool of idle connections to jobs, which are closed after a few seconds."""

    def __init__(self) -> None:
        self._idle: dict[PoolKey, list[Upstream]] = {}
        self._sweep_timer: asyncio.TimerHandle | None = None

    def acquire(self, key: PoolKey) -> Upstream | None:
        """Return an idle connection, the one used last; None: there is none."""
        idle = self._idle.get(key)
        while idle:
            upstream = idle.pop()
            if upstream.is_free:
                return upstream
            upstream.abort()
        return None

    def release(self, key: PoolKey, upstream: Upstream) -> None:
        """Keep a connection for the next request if its response is complete, else close it."""
        idle = self._idle.setdefault(key, [])
        if not upstream.is_free or len(idle) >= _MAX_IDLE:
            upstream.abort()
            return
        idle.append(upstream)
        if self._sweep_timer is None:
            self._sweep_later()

    def close(self) -> None:
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for idle in self._idle.values():
            for upstream in idle:
                upstream.abort()
        self._idle.clear()

    def _sweep_later(self) -> None:
        self._sweep_timer = asyncio.get_running_loop().call_later(1.0, self._sweep)

    def _sweep(self) -> None:
        self._sweep_timer = None
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


class RouteCache:
    """Cache of the attach points of jobs, to dial their ports."""

    def __init__(self, availability: RunnerAvailability, remote: RemoteJobs) -> None:
        self._availability = availability
        self._remote = remote
        self._dialer = Dialer()
        self._attach_points: dict[tuple[str, int], AttachPoint] = {}

    async def connect(
        self, reachable: ReachableJob, port: int, credentials: Credentials
    ) -> Upstream:
        """Open a connection to a port of a job, here or on its own machine. Raises HubError."""
        if reachable.machine_id is None or not self._remote.is_elsewhere(reachable.machine_id):
            return await connect(await self.dial(reachable, port))
        order = TunnelOrder(
            kind="port",
            job_id=reachable.job.id,
            attempt=reachable.job.attempt,
            port=port,
            bearer=credentials.bearer,
            address=credentials.address,
            cookie=credentials.cookie,
        )
        return await connect(await self._remote.open(reachable.machine_id, order))

    def close(self) -> None:
        self._dialer.close()

    async def dial(self, reachable: ReachableJob, port: int) -> socket.socket:
        """Connect to a port of a job that runs here. Raises Unreachable."""
        try:
            return await self._dialer.dial(await self._attach_point(reachable), port)
        except NothingListens:
            self._attach_points.pop(reachable.attempt_key, None)
            raise PortNotListening(reachable.job.id, port) from None
        except CannotJoinNetwork as error:
            self._attach_points.pop(reachable.attempt_key, None)
            raise NetworkUnreachable(reachable.job.id, str(error)) from None

    async def _attach_point(self, reachable: ReachableJob) -> AnyAttachPoint:
        kept = self._attach_points.get(reachable.attempt_key)
        if kept is not None and kept.process.lives():
            return kept
        attach_point = None
        if reachable.runner is not None and reachable.handle is not None:
            attach_point = await self._availability.attach_point(reachable.runner, reachable.handle)
        if attach_point is None:
            raise JobElsewhere(reachable.job.id)
        if len(self._attach_points) >= _MAX_ROUTES:
            self._attach_points.clear()
        if isinstance(attach_point, AttachPoint):
            self._attach_points[reachable.attempt_key] = attach_point
        return attach_point
