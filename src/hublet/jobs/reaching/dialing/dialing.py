"""Connects to what a job listens on."""

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

from hublet.jobs.reaching.dialing.listeners import listeners_of
from hublet.jobs.reaching.dialing.namespaces import Doors, NoWayIn
from hublet.jobs.runners.records import Inside

_SECONDS = 10.0
# In a network of its own a job is at home at both.
_HOME = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))

# A family, and an address of it.
Place = tuple[socket.AddressFamily, str]


class NothingListens(Exception):
    """No process of the job takes connections on the port."""


@dataclass(slots=True)
class Dialer:
    doors: Doors = field(default_factory=Doors)

    async def dial(self, inside: Inside, port: int) -> socket.socket:
        """Return a connected socket that does not block. Raises NothingListens or NoWayIn."""
        for place in await _places(inside, port):
            made = await asyncio.to_thread(self._socket, inside, place[0])
            if await _is_connected(made, (place[1], port)):
                return made
        raise NothingListens

    def close(self) -> None:
        self.doors.close()

    def _socket(self, inside: Inside, family: socket.AddressFamily) -> socket.socket:
        if inside.has_own_network:
            return self.doors.socket_in(inside, family)
        return socket.socket(family)


async def _places(inside: Inside, port: int) -> Iterator[Place]:
    if inside.has_own_network:
        return iter(_HOME)
    try:
        found = await asyncio.to_thread(listeners_of, inside, port)
    except OSError as error:
        raise NoWayIn(str(error)) from error
    return ((each.family, each.address) for each in found)


async def _is_connected(made: socket.socket, address: tuple[str, int]) -> bool:
    """Connect, or close it."""
    made.setblocking(False)
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with asyncio.timeout(_SECONDS):
            await asyncio.get_running_loop().sock_connect(made, address)
    except OSError:  # A timeout is one, too.
        made.close()
        return False
    except asyncio.CancelledError:
        made.close()
        raise
    return True


async def dial(inside: Inside, port: int) -> socket.socket:
    """Return a socket connected to a port of the job, for who needs but one.

    Raises NothingListens or NoWayIn.
    """
    dialer = Dialer()
    try:
        return await dialer.dial(inside, port)
    finally:
        dialer.close()
