"""The gateway: listens, lets guests in, and shows those out who may not stay."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import asyncssh

from hublet.core.channels import CREDENTIALS
from hublet.core.clock import monotonic
from hublet.core.database import Database, DatabaseUnavailable, Reader
from hublet.core.limits import Limiter, Policy
from hublet.core.logs import get_logger
from hublet.jobs.records import JOBS
from hublet.jobs.ssh import service
from hublet.jobs.ssh.doors import Door
from hublet.jobs.ssh.forwarding import Forward, forward
from hublet.jobs.ssh.host_key import host_key
from hublet.jobs.ssh.listening import listen
from hublet.jobs.ssh.records import Guest
from hublet.jobs.ssh.sessions import Session
from hublet.jobs.ssh.visiting import Visiting, Way

log = get_logger("jobs.ssh")

_WINDOW_SECONDS = 900
_LOGIN_SECONDS = 30
_KEEP_ALIVE_SECONDS = 30
_MOST_CONNECTIONS = 500
_LOOK_SECONDS = 0.2
# Not every right that ends is announced, such as that of a key; and a sign may be lost.
_BACK_STOP_SECONDS = 0.6
_IDLE = "Nothing happened for too long."
_STOPPING = "The hub is being stopped."


class Gateway:
    """Speaks SSH on one socket; `way` leads into the attempts of this machine."""

    def __init__(self, database: Database, *, way: Way) -> None:
        settings = database.hub.settings
        self._database = database
        self._visiting = Visiting(database=database, way=way)
        self._idle_seconds = settings.jobs.ssh_idle_seconds
        self.limiter = Limiter(quiet=settings.server.test_mode)
        self.policy = Policy(
            name="ssh", quota=settings.jobs.ssh_attempts, window_seconds=_WINDOW_SECONDS
        )
        self._doors: set[Door] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._server: asyncssh.SSHAcceptor | None = None

    async def start(self, listener: socket.socket) -> None:
        # It would write each command that somebody runs into the log.
        asyncssh.set_log_level("ERROR")
        data_dir = self._database.hub.settings.database.data_dir
        key = asyncssh.import_private_key(await asyncio.to_thread(host_key, data_dir))
        self._server = await asyncssh.listen(
            sock=listener,
            server_factory=self._door,
            server_host_keys=[key],
            server_version="Hublet",
            public_key_auth=True,
            password_auth=False,
            kbdint_auth=False,
            host_based_auth=False,
            gss_host=None,
            x11_forwarding=False,
            agent_forwarding=False,
            line_editor=False,
            encoding=None,
            compression_algs=None,
            login_timeout=_LOGIN_SECONDS,
            keepalive_interval=_KEEP_ALIVE_SECONDS,
            config=None,
        )
        self._watching = asyncio.create_task(self._watch(), name="ssh-watch")

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        for door in list(self._doors):
            door.close(_STOPPING)
        await asyncio.sleep(0)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def guests(self) -> list[Door]:
        """Return the connections of those who were let in."""
        return [door for door in self._doors if door.guest is not None]

    async def admit(self, job_id: str, *, fingerprint: str, data: str) -> Guest | None:
        try:
            async with self._database.read() as conn:
                return await service.admit(conn, job_id, fingerprint=fingerprint, data=data)
        except DatabaseUnavailable:
            return None

    async def welcome(self, door: Door, guest: Guest) -> None:
        log.info("ssh opened", **_told(door, guest))
        async with self._database.transaction() as conn:
            await service.record_session(conn, guest, address=door.address)

    def forget(self, door: Door) -> None:
        self._doors.discard(door)
        if door.guest is not None:
            log.info("ssh closed", **_told(door, door.guest))

    def session(self, guest: Guest, *, touch: Callable[[], None]) -> Session:
        return Session(self._visiting, guest, touch=touch, tasks=self._tasks)

    def forward(
        self, guest: Guest, *, host: str, port: int, touch: Callable[[], None]
    ) -> Awaitable[Forward]:
        return forward(self._visiting, guest, host=host, port=port, touch=touch)

    async def listen(self, guest: Guest, port: int) -> socket.socket | None:
        return await listen(self._visiting, guest, port)

    def _door(self) -> Door:
        door = Door(self, is_welcome=len(self._doors) < _MOST_CONNECTIONS)
        self._doors.add(door)
        return door

    async def _watch(self) -> None:
        with (
            self._database.subscribe(CREDENTIALS) as rights,
            self._database.subscribe(JOBS) as jobs,
        ):
            heard, looked_at = 0, monotonic()
            while True:
                await asyncio.sleep(_LOOK_SECONDS)
                rings = rights.rings + jobs.rings
                if rings == heard and monotonic() < looked_at + _BACK_STOP_SECONDS:
                    continue
                # Noted before the look: what changes during it is looked at once more.
                heard, looked_at = rings, monotonic()
                try:
                    await self._look()
                except DatabaseUnavailable:
                    continue
                except Exception:
                    log.exception("guests of jobs could not be looked at")

    async def _look(self) -> None:
        alike: dict[tuple[str, ...], list[Door]] = {}
        for door in self.guests():
            if monotonic() - door.touched_at > self._idle_seconds:
                door.close(_IDLE)
            elif (guest := door.guest) is not None:
                alike.setdefault(_identity(guest), []).append(door)
        if not alike:
            return
        async with self._database.read() as conn:
            for doors in alike.values():
                if (guest := doors[0].guest) and not await _may_stay(conn, guest):
                    for door in doors:
                        door.close()


async def _may_stay(conn: Reader, guest: Guest) -> bool:
    running = guest.running
    again = await service.admit(
        conn, running.job.id, fingerprint=guest.fingerprint, data=guest.holder.data
    )
    # A job that failed may run again by now: that is another place.
    return again is not None and again.running.handle == running.handle


def _identity(guest: Guest) -> tuple[str, ...]:
    """Return what is the same for all connections of somebody to an attempt."""
    return guest.fingerprint, guest.running.job.id, guest.running.handle


def _told(door: Door, guest: Guest) -> dict[str, str]:
    return {
        "job": guest.running.job.id,
        "user": guest.holder.user_name,
        "key": guest.fingerprint,
        "address": door.address,
    }
