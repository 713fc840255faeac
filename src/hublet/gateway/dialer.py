"""Dialer: connects to a port that a job listens on, in the job's own network or on this machine."""

import asyncio
import os
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import field
from ipaddress import IPv4Address, IPv6Address

from hublet.core.light_dataclasses import dataclass
from hublet.gateway.errors import CannotJoinNetwork, NothingListens
from hublet.gateway.namespace_sockets import NamespaceSockets
from hublet.runtime.records import AttachPoint
from hublet.runtime.shim.system import descendants, read

# sock_diag(7): the table of all sockets in /proc takes ten times as long to read.
_SOCK_DIAG, _BY_FAMILY, _REQUEST_DUMP = 4, 20, 0x301
_ERROR, _DONE = 2, 3
_LISTENING = 1 << 10
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI48x")
# Of an answer: the port and the address it is bound to, and its inode.
_BOUND, _INODE = struct.Struct("!4xH2x16s"), struct.Struct("=I")
_INODE_AT = _HEADER.size + 68
_MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ListeningSocket:
    family: socket.AddressFamily
    # Where to connect: for who listens everywhere it is the machine itself.
    address: str
    inode: int


def listeners_of(inside: AttachPoint, port: int) -> list[ListeningSocket]:
    """Return what processes of the job listen on; what anybody else listens on is not the job's.

    For a job in the network of this machine. Raises OSError where the kernel does not tell.
    """
    families = (socket.AF_INET, socket.AF_INET6)
    found = [each for family in families for each in _listening(family, port)]
    own = set(_inodes(_processes(inside))) if found else set()
    # The process may have ended, and its number be another's by now.
    return [each for each in found if each.inode in own] if inside.process.lives() else []


def _listening(family: socket.AddressFamily, port: int) -> Iterator[ListeningSocket]:
    for message in _diag_messages(_REQUEST.pack(family, socket.IPPROTO_TCP, 0, _LISTENING)):
        number, address = _BOUND.unpack_from(message, _HEADER.size)
        if number == port:
            inode = _INODE.unpack_from(message, _INODE_AT)[0]
            yield ListeningSocket(family=family, address=_address(address, family), inode=inode)


def _diag_messages(request: bytes) -> Iterator[bytes]:
    """Yield each message of the kernel's answer, with its header."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        size = _HEADER.size + len(request)
        kernel.send(_HEADER.pack(size, _BY_FAMILY, _REQUEST_DUMP, 1, 0) + request)
        while True:
            data = kernel.recv(_MOST_BYTES)
            while data:
                length, kind, *_ = _HEADER.unpack_from(data)
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    raise OSError("The kernel does not tell who listens.")
                yield data[:length]
                data = data[(length + 3) & ~3 :]


def _address(packed: bytes, family: socket.AddressFamily) -> str:
    if family == socket.AF_INET:
        found = IPv4Address(packed[:4])
        return "127.0.0.1" if found.is_unspecified else str(found)
    wide = IPv6Address(packed)
    return "::1" if wide.is_unspecified else str(wide)


def _processes(inside: AttachPoint) -> set[int]:
    """Return the processes of a job; what went away from its parent is still below its shim."""
    pid = inside.process.pid
    fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    parent = int(fields[1]) if fields else 0
    found = {pid, *descendants(parent if parent > 1 else pid)}
    for group in inside.groups:
        found.update(map(int, read(f"{group}/cgroup.procs").split()))
    return found


def _inodes(pids: Iterable[int]) -> Iterator[int]:
    for pid in pids:
        with suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    name = os.readlink(entry.path)  # noqa: PTH115 - there may be thousands.
                    if name.startswith("socket:["):
                        yield int(name[8:-1])


_CONNECT_SECONDS = 10.0
# In a network of its own a job is at home at both.
_LOOPBACK = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))

# A family, and an address of it.
SocketAddress = tuple[socket.AddressFamily, str]


@dataclass(slots=True)
class Dialer:
    doors: NamespaceSockets = field(default_factory=NamespaceSockets)

    async def dial(self, inside: AttachPoint, port: int) -> socket.socket:
        """Return a connected socket that does not block. Raises NothingListens or CannotJoinNetwork."""
        for place in await _candidate_addresses(inside, port):
            made = await asyncio.to_thread(self._socket, inside, place[0])
            if await _try_connect(made, (place[1], port)):
                return made
        raise NothingListens

    def close(self) -> None:
        self.doors.close()

    def _socket(self, inside: AttachPoint, family: socket.AddressFamily) -> socket.socket:
        if inside.has_own_network:
            return self.doors.socket_in(inside, family)
        return socket.socket(family)


async def _candidate_addresses(inside: AttachPoint, port: int) -> Iterator[SocketAddress]:
    if inside.has_own_network:
        return iter(_LOOPBACK)
    try:
        found = await asyncio.to_thread(listeners_of, inside, port)
    except OSError as error:
        raise CannotJoinNetwork(str(error)) from error
    return ((each.family, each.address) for each in found)


async def _try_connect(made: socket.socket, address: tuple[str, int]) -> bool:
    """Connect, or close it."""
    made.setblocking(False)
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with asyncio.timeout(_CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(made, address)
    except OSError:  # A timeout is one, too.
        made.close()
        return False
    except asyncio.CancelledError:
        made.close()
        raise
    return True


async def dial(inside: AttachPoint, port: int) -> socket.socket:
    """Return a socket connected to a port of the job, for who needs but one.

    Raises NothingListens or CannotJoinNetwork.
    """
    dialer = Dialer()
    try:
        return await dialer.dial(inside, port)
    finally:
        dialer.close()
