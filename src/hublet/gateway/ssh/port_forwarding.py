"""Port forwarding over SSH: `-L` to a port of the job, `-R` from a port in the job."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

import asyncssh
from asyncssh.constants import OPEN_ADMINISTRATIVELY_PROHIBITED, OPEN_CONNECT_FAILED

from hublet.gateway.errors import CannotJoinNetwork, NothingListens
from hublet.gateway.records import Guest
from hublet.gateway.ssh import job_attachment
from hublet.gateway.ssh.job_attachment import JobAttacher
from hublet.gateway.ssh.pumps import Inlet, Outlet
from hublet.gateway.ssh.remote_listeners import Listener
from hublet.runtime.errors import CannotAttach

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1", ""})
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


class ReverseListener(asyncssh.SSHListener):
    """Forwards each connection from the job to the SSH client (`-R`)."""

    def __init__(
        self,
        conn: asyncssh.SSHServerConnection,
        listener: Listener,
        *,
        host: str,
        touch: Callable[[], None],
    ) -> None:
        super().__init__()
        self._conn = conn
        self._listener = listener
        self._host = host
        self._touch = touch
        self._port = listener.port
        self._opening: set[asyncio.Task[None]] = set()
        self._accepting = asyncio.create_task(self._accept(), name="ssh-listener")

    def get_port(self) -> int:
        return self._port

    def close(self) -> None:
        self._accepting.cancel()

    async def wait_closed(self) -> None:
        await asyncio.gather(self._accepting, return_exceptions=True)

    async def _accept(self) -> None:
        try:
            while True:
                task = asyncio.create_task(self._open(*await self._listener.accept()))
                # The loop holds tasks weakly: without a reference one may vanish before it is done.
                self._opening.add(task)
                task.add_done_callback(self._opening.discard)
        except OSError:
            # The machine of the job went away.
            return
        finally:
            self._listener.close()

    async def _open(self, made: socket.socket, host: str, port: int) -> None:
        session = ForwardedConnection(made, touch=self._touch)
        try:
            await self._conn.create_connection(lambda: session, self._host, self._port, host, port)
        except (OSError, asyncssh.Error):
            with suppress(OSError):
                made.close()
