"""SSH server: authenticates guests by key, and disconnects those who may not stay."""

import asyncio
import base64
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import asyncssh
from asyncssh.constants import DISC_BY_APPLICATION, DISC_NO_MORE_AUTH_METHODS_AVAILABLE
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from hublet.core.clock import monotonic
from hublet.core.database import Database, DatabaseUnavailable, Reader
from hublet.core.database.engine import CREDENTIALS_CHANNEL
from hublet.core.ids import new_object_id
from hublet.core.limits import Limiter, RateLimit
from hublet.core.logs import get_logger
from hublet.gateway.records import Guest
from hublet.gateway.ssh import service
from hublet.gateway.ssh.job_attachment import AttachPointFinder, JobAttacher
from hublet.gateway.ssh.port_forwarding import (
    ForwardedConnection,
    ReverseListener,
    listen_in_job,
    open_forward,
)
from hublet.gateway.ssh.sessions import SshSession
from hublet.jobs.records import JOBS

HOST_KEY_FILE = "ssh_host_ed25519_key"


def host_key(data_dir: Path) -> bytes:
    """Return the key, made at the first start, as OpenSSH writes keys. Blocks."""
    path = data_dir / HOST_KEY_FILE
    if not path.exists():
        _make_host_key(path)
    return path.read_bytes()


def _make_host_key(path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    new = path.with_name(f"{HOST_KEY_FILE}.{new_object_id()}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    # Whole or not at all, and the first of several processes wins.
    with suppress(FileExistsError):
        path.hardlink_to(new)
    new.unlink()


# Keys that one connection may try.
_MAX_KEYS = 10
# What one connection may have at a time, and ask for in all.
_MAX_SESSIONS, _MAX_LISTENERS = 50, 20
_GONE = "The job, the key or the right to the job is gone."


class ConnectionContext(Protocol):
    """What all connections of one gateway share."""

    limiter: Limiter
    policy: RateLimit

    async def admit(self, job_id: str, *, fingerprint: str, data: str) -> Guest | None: ...

    async def welcome(self, door: "SshConnection", guest: Guest) -> None: ...

    def forget(self, door: "SshConnection") -> None: ...

    def session(self, guest: Guest, *, touch: Callable[[], None]) -> SshSession: ...

    def forward(
        self, guest: Guest, *, host: str, port: int, touch: Callable[[], None]
    ) -> Awaitable[ForwardedConnection]: ...

    async def listen(self, guest: Guest, port: int) -> socket.socket | None: ...


class SshConnection(asyncssh.SSHServer):
    """`is_welcome` is false where there are too many already."""

    def __init__(self, house: ConnectionContext, *, is_welcome: bool) -> None:
        self._house = house
        self._is_welcome = is_welcome
        self._conn: asyncssh.SSHServerConnection | None = None
        self._tried = 0
        self._listeners = 0
        self._sessions: list[SshSession] = []
        self._admitted: Guest | None = None
        # Known when the client has shown that it has the key.
        self.guest: Guest | None = None
        self.address = ""
        self.touched_at = monotonic()

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._conn = conn
        self.address = str(conn.get_extra_info("peername", ("",))[0])
        if not self._is_welcome:
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as the library names it.
        self._conn = None
        self._house.forget(self)

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002 - everybody needs a key.
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Tell whether a key opens the job; the same refusal for whatever is missing."""
        self._admitted = None
        if not self._may_try():
            return False
        self._admitted = await self._house.admit(
            username,
            fingerprint=key.get_fingerprint(),
            data=base64.b64encode(key.public_data).decode(),
        )
        if self._admitted is not None:
            self._house.limiter.forgive(self._house.policy, self.address)
        return self._admitted is not None

    def _may_try(self) -> bool:
        self._tried += 1
        verdict = self._house.limiter.count(self._house.policy, self.address)
        if self._conn is not None and self._tried > _MAX_KEYS:
            self._conn.disconnect(DISC_NO_MORE_AUTH_METHODS_AVAILABLE, "Too many keys were tried.")
            return False
        return verdict.allowed

    async def auth_completed(self) -> None:
        guest = self._admitted
        if guest is None:
            self.close(_GONE)
            return
        self.guest = guest
        await self._house.welcome(self, guest)

    def session_requested(self) -> SshSession | bool:
        self._sessions = [session for session in self._sessions if not session.is_over]
        if self.guest is None or len(self._sessions) >= _MAX_SESSIONS:
            return False
        session = self._house.session(self.guest, touch=self.touch)
        self._sessions.append(session)
        return session

    def connection_requested(
        self,
        dest_host: str,
        dest_port: int,
        orig_host: str,  # noqa: ARG002 - as the library names it.
        orig_port: int,  # noqa: ARG002 - as above.
    ) -> Awaitable[ForwardedConnection] | bool:
        if self.guest is None:
            return False
        return self._house.forward(self.guest, host=dest_host, port=dest_port, touch=self.touch)

    async def server_requested(self, listen_host: str, listen_port: int) -> ReverseListener | bool:
        self._listeners += 1
        if self.guest is None or self._conn is None or self._listeners > _MAX_LISTENERS:
            return False
        made = await self._house.listen(self.guest, listen_port)
        if made is None:
            return False
        return ReverseListener(self._conn, made, host=listen_host, touch=self.touch)

    def touch(self) -> None:
        self.touched_at = monotonic()

    def close(self, reason: str = _GONE) -> None:
        """End the connection and everything of it, with a word to the client."""
        if self._conn is not None:
            self._conn.disconnect(DISC_BY_APPLICATION, reason)


log = get_logger("jobs.ssh")

_WINDOW_SECONDS = 900
_LOGIN_SECONDS = 30
_KEEP_ALIVE_SECONDS = 30
_MAX_CONNECTIONS = 500
_CHECK_SECONDS = 0.2
# Not every right that ends is announced, such as that of a key; and a sign may be lost.
_BACK_STOP_SECONDS = 0.6
_IDLE = "Nothing happened for too long."
_STOPPING = "The hub is being stopped."


class SshGateway:
    """Speaks SSH on one socket; `way` leads into the attempts of this machine."""

    def __init__(self, database: Database, *, way: AttachPointFinder) -> None:
        settings = database.hub.settings
        self._database = database
        self._visiting = JobAttacher(database=database, way=way)
        self._idle_seconds = settings.jobs.ssh_idle_seconds
        self.limiter = Limiter(quiet=settings.server.test_mode)
        self.policy = RateLimit(
            name="ssh", quota=settings.jobs.ssh_attempts, window_seconds=_WINDOW_SECONDS
        )
        self._doors: set[SshConnection] = set()
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

    def guests(self) -> list[SshConnection]:
        """Return the connections of those who were let in."""
        return [door for door in self._doors if door.guest is not None]

    async def admit(self, job_id: str, *, fingerprint: str, data: str) -> Guest | None:
        try:
            async with self._database.read() as conn:
                return await service.admit(conn, job_id, fingerprint=fingerprint, data=data)
        except DatabaseUnavailable:
            return None

    async def welcome(self, door: SshConnection, guest: Guest) -> None:
        log.info("ssh opened", **_log_fields(door, guest))
        async with self._database.transaction() as conn:
            await service.record_session(conn, guest, address=door.address)

    def forget(self, door: SshConnection) -> None:
        self._doors.discard(door)
        if door.guest is not None:
            log.info("ssh closed", **_log_fields(door, door.guest))

    def session(self, guest: Guest, *, touch: Callable[[], None]) -> SshSession:
        return SshSession(self._visiting, guest, touch=touch, tasks=self._tasks)

    def forward(
        self, guest: Guest, *, host: str, port: int, touch: Callable[[], None]
    ) -> Awaitable[ForwardedConnection]:
        return open_forward(self._visiting, guest, host=host, port=port, touch=touch)

    async def listen(self, guest: Guest, port: int) -> socket.socket | None:
        return await listen_in_job(self._visiting, guest, port)

    def _door(self) -> SshConnection:
        door = SshConnection(self, is_welcome=len(self._doors) < _MAX_CONNECTIONS)
        self._doors.add(door)
        return door

    async def _watch(self) -> None:
        with (
            self._database.subscribe(CREDENTIALS_CHANNEL) as rights,
            self._database.subscribe(JOBS) as jobs,
        ):
            heard, looked_at = 0, monotonic()
            while True:
                await asyncio.sleep(_CHECK_SECONDS)
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
        alike: dict[tuple[str, ...], list[SshConnection]] = {}
        for door in self.guests():
            if monotonic() - door.touched_at > self._idle_seconds:
                door.close(_IDLE)
            elif (guest := door.guest) is not None:
                alike.setdefault(_guest_key(guest), []).append(door)
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


def _guest_key(guest: Guest) -> tuple[str, ...]:
    """Return what is the same for all connections of somebody to an attempt."""
    return guest.fingerprint, guest.running.job.id, guest.running.handle


def _log_fields(door: SshConnection, guest: Guest) -> dict[str, str]:
    return {
        "job": guest.running.job.id,
        "user": guest.holder.user_name,
        "key": guest.fingerprint,
        "address": door.address,
    }
