"""Client for all outgoing calls: one for the life of a process."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from ssl import SSLContext
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hublet.core.config import Settings
from hublet.core.outgoing.networks import AddressPolicy
from hublet.core.outgoing.records import OutgoingRequest, OutgoingResponse
from hublet.core.outgoing.resolver import Resolve, Resolver
from hublet.core.tracing import call_span, propagation_headers

if TYPE_CHECKING:
    from hublet.core.outgoing.session import OutgoingSession
    from hublet.core.outgoing.streams import OutgoingStream

PER_HOST = 64


class OutgoingClient:
    """Keep one for the life of a process: connections stay open between calls."""

    def __init__(
        self,
        settings: Settings,
        *,
        resolve: Resolve | None = None,
        per_host: int = PER_HOST,
        policy: AddressPolicy | None = None,
    ) -> None:
        self.policy = policy or AddressPolicy.of(settings)
        self._resolve = resolve
        self._per_host = per_host
        self._opening = asyncio.Lock()
        self._session: OutgoingSession | None = None

    async def send(self, request: OutgoingRequest) -> OutgoingResponse:
        """Send one request and return its outcome.

        A failure of the network is a response with a reason, never an exception.
        """
        session = self._session or await self._open()
        with call_span(request.method, request.url):
            if headers := propagation_headers():
                request = replace(request, headers={**request.headers, **headers})
            return await session.send(request)

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, headers: Mapping[str, str], *, idle_seconds: float
    ) -> "AsyncIterator[OutgoingStream]":
        """Send a request whose response may have any size; see `streams`."""
        session = self._session or await self._open()
        # It imports aiohttp too, which is there by now.
        from hublet.core.outgoing.streams import open_stream  # noqa: PLC0415 - as above.

        with call_span(method, url):
            sent = {**headers, **(propagation_headers() or {})}
            async with open_stream(
                session, method, url, sent, idle_seconds=idle_seconds
            ) as response:
                yield response

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _open(self) -> "OutgoingSession":
        async with self._opening:
            if self._session is None:
                session_class, tls = await asyncio.to_thread(_load)
                resolve = self._resolve or Resolver().resolve
                self._session = session_class(self.policy, resolve, tls, per_host=self._per_host)
            return self._session


def _load() -> tuple[type["OutgoingSession"], SSLContext]:
    """Import aiohttp and read the trusted certificates: a quarter of a second, so in a thread."""
    from hublet.core.outgoing.connector import tls_context  # noqa: PLC0415 - as above.
    from hublet.core.outgoing.session import OutgoingSession  # noqa: PLC0415 - as above.

    return OutgoingSession, tls_context()
