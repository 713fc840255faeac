"""Guarded connector (aiohttp): checks every address before it is dialled, and every resolved one."""

import socket
import ssl
from functools import partial
from ipaddress import ip_address
from typing import Any, cast

from aiohttp import AddrInfoType, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_exceptions import BadHttpMessage

from hublet.core.outgoing.client import Resolve
from hublet.core.outgoing.networks import AddressPolicy, classify
from hublet.core.outgoing.timings import mark_stage

# Long enough for a burst of deliveries, short enough to follow a move.
NAME_CACHE_SECONDS = 10
# A server may send interim answers (102, 103); nobody needs more than a few.
MAX_INTERIM_ANSWERS = 16
_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


class AddressBlocked(OSError):
    """The address is one that this hub does not call. It carries no address: see `session`."""


class GuardedResolver(AbstractResolver):
    """Refuses a name when any of its addresses is refused, lest the next answer be another."""

    def __init__(self, policy: AddressPolicy, resolve: Resolve) -> None:
        self._policy = policy
        self._resolve = resolve

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 - aiohttp's signature.
    ) -> list[ResolveResult]:
        mark_stage("name_asked")
        addresses = await self._resolve(host)
        mark_stage("name_known")
        if not addresses:
            raise OSError(f"{host} has no address.")
        for address in addresses:
            refuse_unless_allowed(address, self._policy)
        return [_resolve_result(host, address, port) for address in addresses]

    async def close(self) -> None:
        pass


def _resolve_result(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(
        hostname=host, host=address, port=port, family=family, proto=0, flags=_NUMERIC
    )


def refuse_unless_allowed(address: str, policy: AddressPolicy) -> None:
    try:
        allowed = classify(ip_address(address), policy).allowed
    except ValueError:
        # What is not an address in the one usual form is not dialled.
        allowed = False
    if not allowed:
        raise AddressBlocked


def open_socket(policy: AddressPolicy, info: AddrInfoType) -> socket.socket:
    """Make the socket for one dial: aiohttp does this for every address, also for a literal."""
    family, kind, protocol, _, where = info
    refuse_unless_allowed(str(where[0]), policy)
    mark_stage("dialled")
    return socket.socket(family=family, type=kind, proto=protocol)


class BoundedHandler(ResponseHandler):
    """Ends a connection on which interim answers (1xx) do not stop: aiohttp reads any number."""

    def __init__(self, loop: Any) -> None:
        super().__init__(loop)
        self._interim = 0

    def feed_data(self, data: Any, size: int = 0) -> None:
        is_interim = data[0].code < 200  # noqa: PLR2004 - the class of interim answers.
        self._interim = self._interim + 1 if is_interim else 0
        if self._interim > MAX_INTERIM_ANSWERS:
            self.set_exception(BadHttpMessage("Too many interim answers"))
        else:
            super().feed_data(data, size)


class GuardedConnector(TCPConnector):
    def __init__(
        self, policy: AddressPolicy, resolve: Resolve, tls: ssl.SSLContext, *, per_host: int
    ) -> None:
        super().__init__(
            resolver=GuardedResolver(policy, resolve),
            socket_factory=partial(open_socket, policy),
            ssl=tls,
            limit=0,
            limit_per_host=per_host,
            use_dns_cache=True,
            ttl_dns_cache=NAME_CACHE_SECONDS,
        )
        # Not promised by aiohttp; a test floods a client with interim answers and would tell.
        handler = partial(BoundedHandler, loop=self._loop)
        self._factory = cast("partial[ResponseHandler]", handler)

    async def connect(self, *args: Any, **kwargs: Any) -> Connection:
        connection = await super().connect(*args, **kwargs)
        mark_stage("connected")
        return connection


class _TimedContext(ssl.SSLContext):
    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        mark_stage("tls_begun")
        return super().wrap_bio(*args, **kwargs)


def tls_context() -> ssl.SSLContext:
    """Read the certificates that this machine trusts: slow, so once, and in a thread."""
    context = _TimedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_default_certs()
    context.set_alpn_protocols(["http/1.1"])
    return context
