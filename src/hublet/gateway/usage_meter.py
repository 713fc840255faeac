"""Meter of running jobs: what an attempt uses now, on this machine or on another one.

The machine of a job sends a line of JSON for each period through a tunnel; all who follow that job here
share it, and it is closed when nobody has asked for a while.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from hublet.core.clock import monotonic
from hublet.core.errors import HubError
from hublet.gateway.records import RemoteJobs, TunnelOrder
from hublet.jobs.records import MeasuredAttempt, Usage
from hublet.runtime.supervisor.runner_selection import RunnerAvailability

_PERIOD_SECONDS = 1.0
# A follower asks once a period: after so long there is none.
_IDLE_SECONDS = 10.0
# For the first line of another machine.
_FIRST_SECONDS = 10.0

# Measures an attempt of this machine, by the name of its runner and its handle.
AttemptMeter = Callable[[str, str], Awaitable[Usage | None]]


class UsageMeter:
    """Measures attempts wherever they run."""

    def __init__(self, availability: RunnerAvailability, remote: RemoteJobs) -> None:
        self._availability = availability
        self._remote = remote
        self._streams: dict[tuple[str, int], _UsageStream] = {}

    async def usage(self, attempt: MeasuredAttempt) -> Usage | None:
        """Return what an attempt uses now; None when nobody can tell."""
        if attempt.runner is None or attempt.handle is None:
            return None
        if attempt.machine_id is None or not self._remote.is_elsewhere(attempt.machine_id):
            return await self._availability.usage(attempt.runner, attempt.handle)
        key = attempt.job_id, attempt.attempt
        stream = self._streams.get(key)
        if stream is None or stream.task.done():
            order = TunnelOrder(kind="usage", job_id=attempt.job_id, attempt=attempt.attempt)
            stream = _UsageStream(self._remote.open(attempt.machine_id, order))
            self._streams[key] = stream
            stream.task.add_done_callback(lambda _: self._streams.pop(key, None))
        return await stream.read()


class _UsageStream:
    """What another machine says that one of its attempts uses."""

    def __init__(self, opening: Awaitable[socket.socket]) -> None:
        self._latest: Usage | None = None
        self._first = asyncio.Event()
        self._asked_at = monotonic()
        self.task = asyncio.create_task(self._follow(opening), name="remote-usage")

    async def read(self) -> Usage | None:
        self._asked_at = monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_SECONDS):
                await self._first.wait()
        return self._latest

    async def _follow(self, opening: Awaitable[socket.socket]) -> None:
        try:
            reader, writer = await asyncio.open_connection(sock=await opening)
            try:
                while line := await reader.readline():
                    self._latest = msgspec.json.decode(line, type=Usage | None)
                    self._first.set()
                    if monotonic() > self._asked_at + _IDLE_SECONDS:
                        return
            finally:
                writer.close()
        except (HubError, OSError):
            # Its machine is away; who asks again tries again.
            return
        finally:
            self._latest = None
            self._first.set()


async def send_usage(made: socket.socket, measure: Callable[[], Awaitable[Usage | None]]) -> None:
    """Send what an attempt of this machine uses to another one, until that has read enough."""
    loop = asyncio.get_running_loop()
    with made, suppress(OSError):
        while True:
            began_at = monotonic()
            await loop.sock_sendall(made, msgspec.json.encode(await measure()) + b"\n")
            await asyncio.sleep(max(0.0, began_at + _PERIOD_SECONDS - monotonic()))
