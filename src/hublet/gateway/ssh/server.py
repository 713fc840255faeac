"""SSH server: authenticates guests by key, and disconnects those who lost their rights."""

import asyncio
import base64
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncssh
from asyncssh.constants import DISC_BY_APPLICATION, DISC_NO_MORE_AUTH_METHODS_AVAILABLE
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from hublet.core import metadata
from hublet.core.clock import monotonic
from hublet.core.database import Database, DatabaseUnavailable, Reader
from hublet.core.database.engine import CREDENTIALS_CHANNEL
from hublet.core.limits import Limiter, RateLimit
from hublet.core.logs import get_logger
from hublet.gateway.records import Guest, RemoteJobs
from hublet.gateway.ssh import service
from hublet.gateway.ssh.job_attachment import AttachPointFinder, JobAttacher
from hublet.gateway.ssh.port_forwarding import (
    ForwardedConnection,
    ReverseListener,
    open_forward,
)
from hublet.gateway.ssh.remote_listeners import Listener
from hublet.gateway.ssh.sessions import SshSession
from hublet.jobs.records import JOBS
from hublet.runtime.errors import CannotAttach

log = get_logger("jobs.ssh")

# Where earlier versions kept it, in the data folder.
HOST_KEY_FILE = "ssh_host_ed25519_key"
_HOST_KEY_NAME = "ssh_host_key"
# Limit of keys that one connection may try.
_MAX_KEYS = 10
# Limits of one connection: sessions at a time, and listeners in all.
_MAX_SESSIONS, _MAX_LISTENERS = 50, 20
_GONE = "The job, the key or the right to the job is gone."
_WINDOW_SECONDS = 900
_LOGIN_SECONDS = 30
_KEEP_ALIVE_SECONDS = 30
_MAX_CONNECTIONS = 500
_CHECK_SECONDS = 0.2
# Not every lost right is notified, such as that of a removed key, and a notification may be lost.
_BACK_STOP_SECONDS = 0.6
_IDLE = "Nothing happened for too long."
_STOPPING = "The hub is being stopped."


class SshGateway:
    """SSH server on one socket, for the attempts of this machine."""

    def __init__(
        self,
        database: Database,
        *,
        find_attach_point: AttachPointFinder,
        remote: RemoteJobs | None = None,
    ) -> None:
        settings = database.hub.settings
        self._database = database
        self._attacher = JobAttacher(
            database=database, find_attach_point=find_attach_point, remote=remote
        )
        self._idle_seconds = settings.jobs.ssh_idle_seconds
        self.limiter = Limiter(quiet=settings.server.test_mode, process=database.hub.process)
        self.policy = RateLimit(
            name="ssh", quota=settings.jobs.ssh_attempts, window_seconds=_WINDOW_SECONDS
        )
        self._connections: set[SshConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._server: asyncssh.SSHAcceptor | None = None

    async def start(self, listener: socket.socket) -> None:
        # At other levels the library logs each command that somebody runs.
        asyncssh.set_log_level("ERROR")
        key = asyncssh.import_private_key(await host_key(self._database))
        self._server = await asyncssh.listen(
            sock=listener,
            server_factory=self._connect,
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
        for connection in list(self._connections):
            connection.close(_STOPPING)
        await asyncio.sleep(0)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def guests(self) -> "list[SshConnection]":
        """Return the connections that are authenticated."""
        return [connection for connection in self._connections if connection.guest is not None]

    async def admit(
        self, job_id: str, *, fingerprint: str, data: str, address: str
    ) -> Guest | None:
        try:
            async with self._database.read() as conn:
                return await service.admit(
                    conn, job_id, fingerprint=fingerprint, data=data, address=address
                )
        except DatabaseUnavailable:
            return None

    async def on_authenticated(self, connection: "SshConnection", guest: Guest) -> None:
        log.info("ssh opened", **_log_fields(connection, guest))
        async with self._database.transaction() as conn:
            await service.record_session(conn, guest, address=connection.address)

    def on_closed(self, connection: "SshConnection") -> None:
        self._connections.discard(connection)
        if connection.guest is not None:
            log.info("ssh closed", **_log_fields(connection, connection.guest))

    def session(self, guest: Guest, *, touch: Callable[[], None]) -> SshSession:
        return SshSession(self._attacher, guest, touch=touch, tasks=self._tasks)

    def forward(
        self, guest: Guest, *, host: str, port: int, touch: Callable[[], None]
    ) -> Awaitable[ForwardedConnection]:
        return open_forward(self._attacher, guest, host=host, port=port, touch=touch)

    async def listen(self, guest: Guest, port: int) -> Listener | None:
        """Listen on a port in the job; None where that is impossible."""
        try:
            return await self._attacher.listen(guest, port)
        except CannotAttach:
            return None

    def _connect(self) -> "SshConnection":
        connection = SshConnection(self, is_accepted=len(self._connections) < _MAX_CONNECTIONS)
        self._connections.add(connection)
        return connection

    async def _watch(self) -> None:
        with (
            self._database.subscribe(CREDENTIALS_CHANNEL) as rights,
            self._database.subscribe(JOBS) as jobs,
        ):
            checked_wakes, checked_at = 0, monotonic()
            while True:
                await asyncio.sleep(_CHECK_SECONDS)
                wakes = rights.wakes + jobs.wakes
                if wakes == checked_wakes and monotonic() < checked_at + _BACK_STOP_SECONDS:
                    continue
                # Noted before the check: a change during it causes another check.
                checked_wakes, checked_at = wakes, monotonic()
                try:
                    await self._recheck()
                except DatabaseUnavailable:
                    continue
                except Exception:
                    log.exception("guests of jobs could not be looked at")

    async def _recheck(self) -> None:
        by_guest: dict[tuple[str, ...], list[SshConnection]] = {}
        for connection in self.guests():
            if monotonic() - connection.touched_at > self._idle_seconds:
                connection.close(_IDLE)
            elif (guest := connection.guest) is not None:
                by_guest.setdefault(_guest_key(guest), []).append(connection)
        if not by_guest:
            return
        async with self._database.read() as conn:
            for connections in by_guest.values():
                if (guest := connections[0].guest) and not await _may_stay(conn, guest):
                    for connection in connections:
                        connection.close()


class SshConnection(asyncssh.SSHServer):
    """One connection; `is_accepted` is false where there are too many already."""

    def __init__(self, gateway: SshGateway, *, is_accepted: bool) -> None:
        self._gateway = gateway
        self._is_accepted = is_accepted
        self._conn: asyncssh.SSHServerConnection | None = None
        self._keys_tried = 0
        self._listeners = 0
        self._sessions: list[SshSession] = []
        self._admitted: Guest | None = None
        # Set when the client has proved that it has the key.
        self.guest: Guest | None = None
        self.address = ""
        self.touched_at = monotonic()

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._conn = conn
        self.address = str(conn.get_extra_info("peername", ("",))[0])
        if not self._is_accepted:
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as the library names it.
        self._conn = None
        self._gateway.on_closed(self)

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002 - everybody needs a key.
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Tell whether a key opens the job; all refusals are alike."""
        self._admitted = None
        if not self._may_try():
            return False
        self._admitted = await self._gateway.admit(
            username,
            fingerprint=key.get_fingerprint(),
            data=base64.b64encode(key.public_data).decode(),
            address=self.address,
        )
        if self._admitted is not None:
            self._gateway.limiter.refund(self._gateway.policy, self.address)
        return self._admitted is not None

    def _may_try(self) -> bool:
        self._keys_tried += 1
        verdict = self._gateway.limiter.count(self._gateway.policy, self.address)
        if self._conn is not None and self._keys_tried > _MAX_KEYS:
            self._conn.disconnect(DISC_NO_MORE_AUTH_METHODS_AVAILABLE, "Too many keys were tried.")
            return False
        return verdict.allowed

    async def auth_completed(self) -> None:
        guest = self._admitted
        if guest is None:
            self.close(_GONE)
            return
        self.guest = guest
        await self._gateway.on_authenticated(self, guest)

    def session_requested(self) -> SshSession | bool:
        self._sessions = [session for session in self._sessions if not session.is_over]
        if self.guest is None or len(self._sessions) >= _MAX_SESSIONS:
            return False
        session = self._gateway.session(self.guest, touch=self.touch)
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
        return self._gateway.forward(self.guest, host=dest_host, port=dest_port, touch=self.touch)

    async def server_requested(self, listen_host: str, listen_port: int) -> ReverseListener | bool:
        self._listeners += 1
        if self.guest is None or self._conn is None or self._listeners > _MAX_LISTENERS:
            return False
        listener = await self._gateway.listen(self.guest, listen_port)
        if listener is None:
            return False
        return ReverseListener(self._conn, listener, host=listen_host, touch=self.touch)

    def touch(self) -> None:
        self.touched_at = monotonic()

    def close(self, reason: str = _GONE) -> None:
        """Disconnect and end all sessions; the client gets the reason."""
        if self._conn is not None:
            self._conn.disconnect(DISC_BY_APPLICATION, reason)


async def _may_stay(conn: Reader, guest: Guest) -> bool:
    running = guest.running
    admitted = await service.admit(
        conn,
        running.job.id,
        fingerprint=guest.fingerprint,
        data=guest.holder.data,
        address=guest.address,
    )
    # A failed job may run again by now, in another attempt.
    return admitted is not None and admitted.running.handle == running.handle


def _guest_key(guest: Guest) -> tuple[str, ...]:
    """Return a key that connections of one guest to one attempt share."""
    return guest.fingerprint, guest.running.job.id, guest.running.handle, guest.address


def _log_fields(connection: SshConnection, guest: Guest) -> dict[str, str]:
    return {
        "job": guest.running.job.id,
        "user": guest.holder.user_name,
        "key": guest.fingerprint,
        "address": connection.address,
    }


async def host_key(database: Database) -> bytes:
    """Return the host key in OpenSSH format, which all machines of the hub have in common.

    It is in the database, sealed. The first start makes it, or takes it over from the file that a
    data folder had it in before.
    """
    async with database.read() as reader:
        sealed = await metadata.find(reader, _HOST_KEY_NAME)
    keys = database.hub.keys
    if sealed is None:
        path = database.hub.settings.database.data_dir / HOST_KEY_FILE
        plain = await asyncio.to_thread(_read_or_make_key, path)
        new = base64.b64encode(keys.seal(plain, context=_HOST_KEY_NAME)).decode()
        async with database.transaction() as conn:
            # The first of several processes wins.
            sealed = await metadata.find_or_add(conn, _HOST_KEY_NAME, new)
    return keys.open(base64.b64decode(sealed), context=_HOST_KEY_NAME)


def _read_or_make_key(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        key = Ed25519PrivateKey.generate()
        return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
