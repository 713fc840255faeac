"""Dialer: connects to a port that a job listens on, in the job's own network or on this machine."""

import asyncio
import os
import socket
import struct
from collections.abc import Awaitable, Iterable, Iterator
from contextlib import suppress
from dataclasses import field
from ipaddress import IPv4Address, IPv6Address

from hublet.core.dataclasses import dataclass
from hublet.gateway.errors import CannotJoinNetwork, NothingListens
from hublet.gateway.namespace_sockets import NamespaceSockets
from hublet.runtime.errors import CannotAttach, PortClosed
from hublet.runtime.records import AnyAttachPoint, AttachPoint
from hublet.runtime.shim.system import descendants, read

_CONNECT_SECONDS = 10.0
# Of a job with a network of its own, which may listen on either.
_LOOPBACK = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))

# sock_diag(7): the table of all sockets in /proc takes ten times as long to read.
_SOCK_DIAG, _BY_FAMILY, _REQUEST_DUMP = 4, 20, 0x301
_ERROR, _DONE = 2, 3
_LISTENING = 1 << 10
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI48x")
# In a response: the port and the address that a socket is bound to, and its inode.
_BOUND, _INODE = struct.Struct("!4xH2x16s"), struct.Struct("=I")
_INODE_AT = _HEADER.size + 68
_MOST_BYTES = 1 << 16

# A family, and an address of it.
SocketAddress = tuple[socket.AddressFamily, str]


@dataclass(slots=True)
class Dialer:
    """Connects to jobs; `sockets` keeps what is needed to join their networks."""

    sockets: NamespaceSockets = field(default_factory=NamespaceSockets)

    async def dial(self, attach_point: AnyAttachPoint, port: int) -> socket.socket:
        """Return a connected socket that does not block. Raises NothingListens or CannotJoinNetwork."""
        if not isinstance(attach_point, AttachPoint):
            return await _dial_remote(attach_point.dial(port))
        for family, address in await _listening_addresses(attach_point, port):
            made = await asyncio.to_thread(self._socket, attach_point, family)
            if await _try_connect(made, (address, port)):
                return made
        raise NothingListens

    async def dial_peer(
        self, attach_point: AnyAttachPoint, addresses: Iterable[str], port: int
    ) -> socket.socket:
        """Return a socket to the first of a job's network group that accepts the connection.

        It is made in the job's own network. Raises NothingListens or CannotJoinNetwork.
        """
        if not isinstance(attach_point, AttachPoint):
            return await _dial_remote(attach_point.dial_peer(addresses, port))
        for address in addresses:
            made = await asyncio.to_thread(self.sockets.socket_in, attach_point, socket.AF_INET)
            if await _try_connect(made, (address, port)):
                return made
        raise NothingListens

    def close(self) -> None:
        self.sockets.close()

    def _socket(self, attach_point: AttachPoint, family: socket.AddressFamily) -> socket.socket:
        if attach_point.has_own_network:
            return self.sockets.socket_in(attach_point, family)
        return socket.socket(family)


async def _dial_remote(dialing: Awaitable[socket.socket]) -> socket.socket:
    try:
        return await dialing
    except PortClosed:
        raise NothingListens from None
    except CannotAttach as error:
        raise CannotJoinNetwork(str(error)) from error


async def _listening_addresses(attach_point: AttachPoint, port: int) -> Iterator[SocketAddress]:
    if attach_point.has_own_network:
        return iter(_LOOPBACK)
    try:
        found = await asyncio.to_thread(listeners_of, attach_point, port)
    except OSError as error:
        raise CannotJoinNetwork(str(error)) from error
    return ((each.family, each.address) for each in found)


async def _try_connect(made: socket.socket, address: tuple[str, int]) -> bool:
    """Connect, or close the socket."""
    made.setblocking(False)
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with asyncio.timeout(_CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(made, address)
    except OSError:  # A timeout is one, too.
        made.close()
        return False
    except BaseException:
        made.close()
        raise
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ListeningSocket:
    family: socket.AddressFamily
    # To connect to: for a socket on all addresses it is loopback.
    address: str
    inode: int


def listeners_of(attach_point: AttachPoint, port: int) -> list[ListeningSocket]:
    """Return the sockets on a port that belong to processes of the job.

    For a job that shares the network of this machine with others. Raises OSError if the kernel
    refuses.
    """
    families = (socket.AF_INET, socket.AF_INET6)
    found = [each for family in families for each in _listening(family, port)]
    own = set(_inodes(_processes(attach_point))) if found else set()
    # The process may have ended, and its pid been reused.
    return [each for each in found if each.inode in own] if attach_point.process.lives() else []


def _listening(family: socket.AddressFamily, port: int) -> Iterator[ListeningSocket]:
    for message in _diag_messages(_REQUEST.pack(family, socket.IPPROTO_TCP, 0, _LISTENING)):
        number, address = _BOUND.unpack_from(message, _HEADER.size)
        if number == port:
            inode = _INODE.unpack_from(message, _INODE_AT)[0]
            yield ListeningSocket(family=family, address=_address(address, family), inode=inode)


def _diag_messages(request: bytes) -> Iterator[bytes]:
    """Yield each message of the kernel's response, with its header."""
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


def _processes(attach_point: AttachPoint) -> set[int]:
    """Return the processes of a job; orphans are children of its shim."""
    pid = attach_point.process.pid
    fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    parent = int(fields[1]) if fields else 0
    found = {pid, *descendants(parent if parent > 1 else pid)}
    for group in attach_point.groups:
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
