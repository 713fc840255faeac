"""Streams over aiohttp: responses of any size, which are read piece by piece and never kept in memory.

Loaded with the first stream: aiohttp takes long to import.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import aiohttp
from aiohttp import (
    ClientError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
)
from multidict import istr

from hublet.core.clock import monotonic
from hublet.core.outgoing.connector import GuardedConnector
from hublet.core.outgoing.dialer import GuardedNames
from hublet.core.outgoing.failures import (
    Failure,
    explain_dial,
    explain_invalid,
    explain_loss,
    explain_timeout,
)
from hublet.core.outgoing.http_connection import MAX_HEADER_BYTES, MAX_HEADERS
from hublet.core.outgoing.networks import AddressPolicy
from hublet.core.outgoing.records import FailureReason, OutgoingFailed
from hublet.core.outgoing.session import OWN_HEADERS, find_target
from hublet.core.outgoing.timings import StageTimes, start_timing
from hublet.core.outgoing.urls import Destination

_BUFFER_BYTES = 16_384
# Signed addresses of object stores are long.
_MAX_STREAM_URL = 8000


class _PlainRequest(ClientRequest):
    """Sends no headers of aiohttp's own; naming each to be left out takes longer."""

    DEFAULT_HEADERS: dict[istr, str] = {}  # noqa: RUF012 - as aiohttp declares it.


class StreamSession:
    """One session with its pool of open connections."""

    def __init__(
        self, policy: AddressPolicy, names: GuardedNames, tls: ssl.SSLContext, *, per_host: int
    ) -> None:
        self._policy = policy
        self._session = ClientSession(
            connector=GuardedConnector(policy, names, tls, per_host=per_host),
            request_class=_PlainRequest,
            cookie_jar=DummyCookieJar(),
            # The deadlines are ours: aiohttp's would round up to whole seconds.
            timeout=ClientTimeout(total=None),
            auto_decompress=False,
            trust_env=False,
            read_bufsize=_BUFFER_BYTES,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            max_headers=MAX_HEADERS,
        )

    async def close(self) -> None:
        await self._session.close()

    @asynccontextmanager
    async def open(
        self, method: str, url: str, headers: Mapping[str, str], *, idle_seconds: float
    ) -> AsyncIterator["OutgoingStream"]:
        """Send a request and yield its response; no wait takes longer than said.

        The URL is sent as it is, since some are signed. Redirects are not followed. Raises
        OutgoingFailed.
        """
        times = start_timing()
        found = find_target(url, self._policy, max_length=_MAX_STREAM_URL, encoded=True)
        if isinstance(found, str):
            raise OutgoingFailed(FailureReason.blocked_target, found)
        parsed, target = found
        with _explained(target, times, idle_seconds):
            async with asyncio.timeout(idle_seconds):
                response = await self._session.request(
                    method, parsed, headers={**OWN_HEADERS, **headers}, allow_redirects=False
                )
        times.answered = monotonic()
        try:
            yield OutgoingStream(response, target, times, idle_seconds=idle_seconds)
        finally:
            # At its end a body gives its connection back by itself; all else is cut off here.
            if not response.closed:
                response.close()


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


@contextmanager
def _explained(target: Destination, times: StageTimes, seconds: float) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise OutgoingFailed(*explain_timeout(target, times, seconds)) from None
    except (ClientError, OSError) as error:
        raise OutgoingFailed(*_explain(error, target, times)) from None


def _explain(error: Exception, target: Destination, times: StageTimes) -> Failure:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return explain_dial(error.certificate_error, target)
        case aiohttp.ClientConnectorError():
            return explain_dial(error.os_error, target)
        case aiohttp.InvalidURL():
            return FailureReason.blocked_target, "The URL is not one that this hub calls."
        case aiohttp.ClientResponseError():
            return explain_invalid(target)
        case _:
            return explain_loss(target, times)
