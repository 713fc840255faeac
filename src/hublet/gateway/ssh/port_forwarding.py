"""Port forwarding over SSH: `-L` to a port of the job, `-R` from a port in the job."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

import asyncssh
from asyncssh.constants import OPEN_ADMINISTRATIVELY_PROHIBITED, OPEN_CONNECT_FAILED

from hublet.gateway.errors import CannotJoinNetwork, NothingListens
from hublet.gateway.namespace_sockets import NamespaceSockets
from hublet.gateway.records import Guest
from hublet.gateway.ssh import job_attachment
from hublet.gateway.ssh.job_attachment import JobAttacher
from hublet.gateway.ssh.pumps import Inlet, Outlet
from hublet.runtime.errors import CannotAttach
from hublet.runtime.records import AttachPoint

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1", ""})
# Lower ports need a capability that no job has.
_FIRST_PORT, _LAST_PORT = 1024, 65535
_LOOPBACK = "127.0.0.1"
_ONLY_THE_JOB = "Only the job itself and its network group are reached through it: name localhost."


async def open_forward(
    attacher: JobAttacher, guest: Guest, *, host: str, port: int, touch: Callable[[], None]
) -> "ForwardedConnection":
    """Connect to a port of the job or of its network group; every other host is refused."""
    job = guest.running.job
    if host not in _LOCAL_NAMES and host != job.id and not job_attachment.is_group_name(job, host):
        raise asyncssh.ChannelOpenError(OPEN_ADMINISTRATIVELY_PROHIBITED, _ONLY_THE_JOB)
    try:
        made = await attacher.dial(guest, host=host, port=port)
    except (NothingListens, OverflowError):
        raise asyncssh.ChannelOpenError(
            OPEN_CONNECT_FAILED, f"Nothing at {host} listens on port {port}."
        ) from None
    except (CannotAttach, CannotJoinNetwork) as error:
        raise asyncssh.ChannelOpenError(OPEN_CONNECT_FAILED, str(error)) from None
    return ForwardedConnection(made, touch=touch)


class ForwardedConnection(asyncssh.SSHTCPSession[bytes]):
    """Pumps bytes between a socket and an SSH channel, in both directions."""

    def __init__(self, made: socket.socket, *, touch: Callable[[], None]) -> None:
        self._socket = made
        self._touch = touch
        self._sides = 2

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        self._chan = chan

    def session_started(self) -> None:
        fd = self._socket.fileno()
        self._inlet = Inlet(
            fd,
            pause=self._chan.pause_reading,
            resume=self._chan.resume_reading,
            finish=self._finish,
        )
        self._outlet = Outlet(fd, deliver=self._deliver, ended=self._ended)

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:  # noqa: ARG002
        self._touch()
        self._inlet.write(data)

    def eof_received(self) -> bool:
        self._inlet.end()
        return True

    def pause_writing(self) -> None:
        self._outlet.pause()

    def resume_writing(self) -> None:
        self._outlet.resume()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as above.
        self._outlet.close()
        self._inlet.close()
        self._socket.close()

    def _deliver(self, data: bytes) -> None:
        self._touch()
        with suppress(OSError):
            self._chan.write(data)

    def _ended(self) -> None:
        with suppress(OSError):
            self._chan.write_eof()
        self._end_side()

    def _finish(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        self._end_side()

    def _end_side(self) -> None:
        self._sides -= 1
        if self._sides == 0:
            self._chan.close()


async def listen_in_job(attacher: JobAttacher, guest: Guest, port: int) -> socket.socket | None:
    """Return a socket that listens on the job's loopback; None where that is impossible."""
    if port and not _FIRST_PORT <= port <= _LAST_PORT:
        return None
    try:
        attach_point = await attacher.attach_point(guest.running)
        if not isinstance(attach_point, AttachPoint):
            return None
        return await asyncio.to_thread(_bind, attach_point, port)
    except (CannotAttach, CannotJoinNetwork, OSError):
        return None


def _bind(attach_point: AttachPoint, port: int) -> socket.socket:
    sockets = NamespaceSockets()
    try:
        own = attach_point.has_own_network
        made = sockets.socket_in(attach_point, socket.AF_INET) if own else socket.socket()
    finally:
        sockets.close()
    try:
        made.setblocking(False)
        made.bind((_LOOPBACK, port))
        made.listen()
    except OSError:
        made.close()
        raise
    return made


class ReverseListener(asyncssh.SSHListener):
    """Forwards each connection from the job to the SSH client (`-R`)."""

    def __init__(
        self,
        conn: asyncssh.SSHServerConnection,
        made: socket.socket,
        *,
        host: str,
        touch: Callable[[], None],
    ) -> None:
        super().__init__()
        self._conn = conn
        self._socket = made
        self._host = host
        self._touch = touch
        self._port: int = made.getsockname()[1]
        self._opening: set[asyncio.Task[None]] = set()
        self._accepting = asyncio.create_task(self._accept(), name="ssh-listener")

    def get_port(self) -> int:
        return self._port

    def close(self) -> None:
        self._accepting.cancel()

    async def wait_closed(self) -> None:
        await asyncio.gather(self._accepting, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                made, origin = await loop.sock_accept(self._socket)
                task = asyncio.create_task(self._open(made, origin[0], origin[1]))
                # The loop holds tasks weakly: without a reference one may vanish before it is done.
                self._opening.add(task)
                task.add_done_callback(self._opening.discard)
        finally:
            self._socket.close()

    async def _open(self, made: socket.socket, host: str, port: int) -> None:
        made.setblocking(False)
        session = ForwardedConnection(made, touch=self._touch)
        try:
            await self._conn.create_connection(lambda: session, self._host, self._port, host, port)
        except (OSError, asyncssh.Error):
            with suppress(OSError):
                made.close()
