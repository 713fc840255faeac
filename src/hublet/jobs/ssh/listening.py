"""Ports in a job that lead to a guest's own machine, as `ssh -R` asks for them."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

import asyncssh

from hublet.jobs.reaching.dialing.namespaces import Doors, NoWayIn
from hublet.jobs.runners.entering.visits import CannotEnter
from hublet.jobs.runners.records import Inside
from hublet.jobs.ssh.forwarding import Forward
from hublet.jobs.ssh.records import Guest
from hublet.jobs.ssh.visiting import Visiting

# Those below need a right that no job has.
_FIRST_PORT, _LAST_PORT = 1024, 65535
_HOME = "127.0.0.1"


async def listen(visiting: Visiting, guest: Guest, port: int) -> socket.socket | None:
    """Return a socket that listens in the job, for the job alone; None where that cannot be."""
    if port and not _FIRST_PORT <= port <= _LAST_PORT:
        return None
    try:
        return await asyncio.to_thread(_bound, await visiting.inside(guest.running), port)
    except (CannotEnter, NoWayIn, OSError):
        return None


def _bound(inside: Inside, port: int) -> socket.socket:
    doors = Doors()
    try:
        own = inside.has_own_network
        made = doors.socket_in(inside, socket.AF_INET) if own else socket.socket()
    finally:
        doors.close()
    try:
        made.setblocking(False)
        made.bind((_HOME, port))
        made.listen()
    except OSError:
        made.close()
        raise
    return made


class Listener(asyncssh.SSHListener):
    """Hands each connection from the job on to the guest."""

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
                # A task that nobody keeps may be gone before it is done.
                self._opening.add(task)
                task.add_done_callback(self._opening.discard)
        finally:
            self._socket.close()

    async def _open(self, made: socket.socket, host: str, port: int) -> None:
        made.setblocking(False)
        session = Forward(made, touch=self._touch)
        try:
            await self._conn.create_connection(lambda: session, self._host, self._port, host, port)
        except (OSError, asyncssh.Error):
            with suppress(OSError):
                made.close()
