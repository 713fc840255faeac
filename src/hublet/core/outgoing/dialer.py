"""Dialer of guarded connections: looks names up, judges every address, and opens the socket, with TLS where it is
wanted. Both transports, `session` and `streams`, go through this guard.
"""

import asyncio
import socket
import ssl
from collections import deque
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Any

from aiohappyeyeballs import AddrInfoType, start_connection

from hublet.core.clock import monotonic
from hublet.core.outgoing.client import Resolve
from hublet.core.outgoing.http_connection import HttpConnection
from hublet.core.outgoing.networks import AddressPolicy, classify
from hublet.core.outgoing.timings import mark_stage
from hublet.core.outgoing.urls import Destination

# Long enough for a burst of deliveries, short enough to follow a move.
NAME_CACHE_SECONDS = 10
_MOST_NAMES = 4096
# So much later the next address is tried beside one that does not answer (RFC 8305).
_NEXT_ADDRESS_SECONDS = 0.25


class AddressBlocked(OSError):
    """The address is one that this hub does not call. It carries no address: see `failures`."""


class NameNotFound(OSError):
    """The name has no address, or nobody could tell."""


def refuse_unless_allowed(address: str, policy: AddressPolicy) -> None:
    try:
        allowed = classify(ip_address(address), policy).allowed
    except ValueError:
        # What is not an address in the one usual form is not dialled.
        allowed = False
    if not allowed:
        raise AddressBlocked


def open_socket(policy: AddressPolicy, info: AddrInfoType) -> socket.socket:
    """Make the socket for one dial: this is done for every address, also for a literal."""
    family, kind, protocol, _, where = info
    refuse_unless_allowed(str(where[0]), policy)
    mark_stage("dialled")
    return socket.socket(family=family, type=kind, proto=protocol)


@dataclass(slots=True)
class _KnownName:
    since: float
    addresses: deque[str]


class GuardedNames:
    """Addresses of names, kept for a moment; many who ask for the same name share a lookup.

    A name is refused when any of its addresses is refused, lest the next answer be another.
    """

    def __init__(self, policy: AddressPolicy, resolve: Resolve) -> None:
        self._policy = policy
        self._resolve = resolve
        self._known: dict[str, _KnownName] = {}
        self._lookups: dict[str, asyncio.Task[_KnownName]] = {}

    async def addresses(self, host: str) -> list[str]:
        """Return them, each time another one first. Raises NameNotFound or AddressBlocked."""
        known = self._known.get(host)
        if known is None or monotonic() - known.since >= NAME_CACHE_SECONDS:
            mark_stage("name_asked")
            # Whoever gives up waiting ends no lookup of others.
            known = await asyncio.shield(self._lookup_of(host))
            mark_stage("name_known")
        known.addresses.rotate(-1)
        return list(known.addresses)

    def close(self) -> None:
        for lookup in self._lookups.values():
            lookup.cancel()

    def _lookup_of(self, host: str) -> "asyncio.Task[_KnownName]":
        lookup = self._lookups.get(host)
        if lookup is None:
            lookup = self._lookups[host] = asyncio.create_task(self._look_up(host))
            lookup.add_done_callback(partial(self._forget_lookup, host))
        return lookup

    def _forget_lookup(self, host: str, lookup: "asyncio.Task[_KnownName]") -> None:
        del self._lookups[host]
        if not lookup.cancelled():
            # It may be that nobody waits for it any more: then nobody is told of its failure.
            lookup.exception()

    async def _look_up(self, host: str) -> _KnownName:
        try:
            addresses = await self._resolve(host)
        except OSError as error:
            raise NameNotFound(str(error)) from error
        if not addresses:
            raise NameNotFound(f"{host} has no address.")
        for address in addresses:
            refuse_unless_allowed(address, self._policy)
        if len(self._known) >= _MOST_NAMES:
            self._known.clear()
        known = self._known[host] = _KnownName(monotonic(), deque(addresses))
        known.addresses.rotate(1)
        return known


class Dialer:
    def __init__(self, policy: AddressPolicy, names: GuardedNames, tls: ssl.SSLContext) -> None:
        self._names = names
        self._tls = tls
        self._open_socket = partial(open_socket, policy)

    async def connect(self, target: Destination) -> HttpConnection:
        """Raises OSError: AddressBlocked, NameNotFound, SSLError or one of the system's."""
        addresses = await self._addresses(target.host)
        connected = await start_connection(
            [_dial_info(address, target.port) for address in addresses],
            happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS,
            socket_factory=self._open_socket,
        )
        secured: dict[str, Any] = {}
        if target.secure:
            mark_stage("tls_begun")
            # Certificates are for names without the dot that ends a complete one.
            secured = {"ssl": self._tls, "server_hostname": target.host.rstrip(".")}
        loop, connection = asyncio.get_running_loop(), HttpConnection()
        try:
            await loop.create_connection(lambda: connection, sock=connected, **secured)
        except BaseException:
            # It may be open just now: the transport, which says goodbye, must not read a closed socket.
            connection.abort()
            connected.close()
            raise
        return connection

    async def _addresses(self, host: str) -> list[str]:
        try:
            # An address with a dot at its end is read by some as the address, so it is judged as one.
            return [str(ip_address(host.rstrip(".")))]
        except ValueError:
            return await self._names.addresses(host)


def _dial_info(address: str, port: int) -> AddrInfoType:
    if ":" in address:
        return socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port, 0, 0)
    return socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port)


def tls_context() -> ssl.SSLContext:
    """Read the certificates that this machine trusts: slow, so once, and in a thread."""
    context = _TimedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_default_certs()
    context.set_alpn_protocols(["http/1.1"])
    return context


class _TimedContext(ssl.SSLContext):
    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        mark_stage("tls_begun")
        return super().wrap_bio(*args, **kwargs)
