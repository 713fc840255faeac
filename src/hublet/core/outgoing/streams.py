"""Streams: responses of any size, which are read piece by piece and never kept in memory."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from aiohttp import ClientError, ClientResponse

from hublet.core.clock import monotonic
from hublet.core.outgoing.records import FailureReason, OutgoingFailed
from hublet.core.outgoing.session import OutgoingSession, explain_failure, explain_timeout
from hublet.core.outgoing.timings import StageTimes, start_timing
from hublet.core.outgoing.urls import Destination


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
