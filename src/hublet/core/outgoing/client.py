"""Client for all outgoing calls, one for the life of a process; and streams: responses of any size, which
are read piece by piece and never kept in memory.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from ssl import SSLContext
from types import TracebackType
from typing import TYPE_CHECKING, Self

from aiohttp import ClientError, ClientResponse

from hublet.core.clock import monotonic
from hublet.core.config import Settings
from hublet.core.outgoing.connector import Resolve, Resolver
from hublet.core.outgoing.networks import AddressPolicy
from hublet.core.outgoing.records import (
    FailureReason,
    OutgoingFailed,
    OutgoingRequest,
    OutgoingResponse,
)
from hublet.core.outgoing.session import OutgoingSession, explain_failure, explain_timeout
from hublet.core.outgoing.timings import StageTimes, start_timing
from hublet.core.outgoing.urls import Destination
from hublet.core.tracing import call_span, propagation_headers


class OutgoingStream:
    """A response whose head has arrived."""

    def __init__(
        self,
        response: ClientResponse,
        target: Destination,
        times: StageTimes,
        *,
        idle_seconds: float,
    ) -> None:
        self.status = response.status
        # As they came, their names in lower case; of several with one name the last.
        self.headers: Mapping[str, str] = {
            name.lower(): value for name, value in response.headers.items()
        }
        self._response = response
        self._target = target
        self._times = times
        self._idle_seconds = idle_seconds

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives. Raises OutgoingFailed when it ends early, or stalls."""
        content = self._response.content
        while not content.at_eof():
            with _explained(self._target, self._times, self._idle_seconds):
                async with asyncio.timeout(self._idle_seconds):
                    piece = await content.readany()
            if piece:
                yield piece

    async def read(self, limit: int) -> bytes | None:
        """Return the whole body; None: it is longer than the limit."""
        body = bytearray()
        async for piece in self.pieces():
            body += piece
            if len(body) > limit:
                return None
        return bytes(body)


@asynccontextmanager
async def open_stream(
    session: OutgoingSession,
    method: str,
    url: str,
    headers: Mapping[str, str],
    *,
    idle_seconds: float,
) -> AsyncIterator[OutgoingStream]:
    """Send a request and yield its response; no wait takes longer than said.

    Redirects are not followed. Raises OutgoingFailed.
    """
    times = start_timing()
    found = session.find_stream_target(url)
    if isinstance(found, str):
        raise OutgoingFailed(FailureReason.blocked_target, found)
    parsed, target = found
    with _explained(target, times, idle_seconds):
        async with asyncio.timeout(idle_seconds):
            response = await session.request(method, parsed, headers)
    times.answered = monotonic()
    try:
        yield OutgoingStream(response, target, times, idle_seconds=idle_seconds)
    finally:
        # At its end a body gives its connection back by itself; all else is cut off here.
        if not response.closed:
            response.close()


@contextmanager
def _explained(target: Destination, times: StageTimes, seconds: float) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        late = explain_timeout(target, times, seconds)
        raise OutgoingFailed(FailureReason.timeout, late) from None
    except (ClientError, OSError) as error:
        raise OutgoingFailed(*explain_failure(error, target, times)) from None


if TYPE_CHECKING:
    from hublet.core.outgoing.session import OutgoingSession

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
