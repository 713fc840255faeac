"""Guarded connector (aiohttp) for streams: the same guard as `dialer`, in the places where aiohttp asks for it."""

import socket
import ssl
from functools import partial
from typing import Any, cast

from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_exceptions import BadHttpMessage

from hublet.core.outgoing.dialer import GuardedNames, open_socket
from hublet.core.outgoing.http_connection import MAX_INTERIM_RESPONSES
from hublet.core.outgoing.networks import AddressPolicy
from hublet.core.outgoing.timings import mark_stage

_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


class GuardedResolver(AbstractResolver):
    def __init__(self, names: GuardedNames) -> None:
        self._names = names

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 - aiohttp's signature.
    ) -> list[ResolveResult]:
        addresses = await self._names.addresses(host)
        return [_resolve_result(host, address, port) for address in addresses]

    async def close(self) -> None:
        pass


def _resolve_result(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(
        hostname=host, host=address, port=port, family=family, proto=0, flags=_NUMERIC
    )


class BoundedHandler(ResponseHandler):
    """Ends a connection on which interim answers (1xx) do not stop: aiohttp reads any number."""

    def __init__(self, loop: Any) -> None:
        super().__init__(loop)
        self._interim = 0

    def feed_data(self, data: Any, size: int = 0) -> None:
        is_interim = data[0].code < 200  # noqa: PLR2004 - the class of interim answers.
        self._interim = self._interim + 1 if is_interim else 0
        if self._interim > MAX_INTERIM_RESPONSES:
            self.set_exception(BadHttpMessage("Too many interim answers"))
        else:
            super().feed_data(data, size)


class GuardedConnector(TCPConnector):
    def __init__(
        self, policy: AddressPolicy, names: GuardedNames, tls: ssl.SSLContext, *, per_host: int
    ) -> None:
        super().__init__(
            resolver=GuardedResolver(names),
            socket_factory=partial(open_socket, policy),
            ssl=tls,
            limit=0,
            limit_per_host=per_host,
            # The names keep what they found.
            use_dns_cache=False,
        )
        # Not promised by aiohttp; a test floods a client with interim answers and would tell.
        handler = partial(BoundedHandler, loop=self._loop)
        self._factory = cast("partial[ResponseHandler]", handler)

    async def connect(self, *args: Any, **kwargs: Any) -> Connection:
        connection = await super().connect(*args, **kwargs)
        mark_stage("connected")
        return connection
