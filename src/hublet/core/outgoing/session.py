"""Session for outgoing calls over aiohttp, the sentences that explain its failures, and streams: responses of
any size, which are read piece by piece and never kept in memory.

A sentence names the host of the URL and never an address that it resolved to, nor what a target
that was refused would have answered. Loaded with the first call: aiohttp takes long to import.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from errno import ECONNREFUSED
from functools import lru_cache

import aiohttp
from aiohttp import (
    ClientError,
    ClientOSError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    ServerDisconnectedError,
)
from multidict import istr
from yarl import URL

from hublet import __version__
from hublet.core.clock import monotonic
from hublet.core.outgoing.client import Resolve
from hublet.core.outgoing.connector import AddressBlocked, GuardedConnector
from hublet.core.outgoing.networks import AddressPolicy
from hublet.core.outgoing.records import (
    FailureReason,
    OutgoingFailed,
    OutgoingRequest,
    OutgoingResponse,
)
from hublet.core.outgoing.timings import DeadlineWatch, StageTimes, start_timing
from hublet.core.outgoing.urls import MAX_URL, Destination, UrlRefused, parse_destination


def explain_failure(
    error: Exception, target: Destination, times: StageTimes
) -> tuple[FailureReason, str]:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return FailureReason.tls_failed, _explain_certificate(error.certificate_error, target)
    if isinstance(error, aiohttp.ClientConnectorError):
        return _explain_connecting(error, target)
    if isinstance(error, aiohttp.InvalidURL):
        return FailureReason.blocked_target, "The URL is not one that this hub calls."
    if isinstance(error, aiohttp.ClientResponseError):
        return FailureReason.bad_answer, f"The answer of {target.host} is not valid HTTP."
    moment = "it answered" if times.answered is None else "its answer was complete"
    return FailureReason.connection_lost, f"{target.host} closed the connection before {moment}."


def _explain_connecting(
    error: aiohttp.ClientConnectorError, target: Destination
) -> tuple[FailureReason, str]:
    where = f"{target.host}:{target.port}"
    match error.os_error:
        case AddressBlocked():
            blocked = f"{target.host} leads to an address that this hub does not call."
            return FailureReason.blocked_target, blocked
        case _ if isinstance(error, aiohttp.ClientConnectorDNSError):
            return FailureReason.dns_failed, f"The name {target.host} could not be looked up."
        case _ if isinstance(error, aiohttp.ClientConnectorSSLError):
            return FailureReason.tls_failed, f"{where} does not speak TLS as this hub does."
        case OSError(errno=code) if code == ECONNREFUSED:
            return FailureReason.connection_refused, f"{where} refused the connection."
        case _:
            return FailureReason.connection_failed, f"No connection to {where} could be made."


def _explain_certificate(error: Exception, target: Destination) -> str:
    why = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else "not valid"
    return f"The certificate of {target.host} is not trusted: {why}."


def explain_timeout(target: Destination, times: StageTimes, seconds: float) -> str:
    if times.answered is not None:
        doing = f"{target.host} did not finish its answer"
    elif times.connected is not None:
        doing = f"{target.host} did not answer"
    elif times.dialled is not None:
        doing = f"No connection to {target.host}:{target.port} could be made"
    else:
        doing = f"{target.host} could not be reached"
    return f"{doing} within {seconds:g} seconds."


MAX_HEADERS = 100
MAX_HEADER_BYTES = 8190
_BUFFER_BYTES = 16_384
_KEPT_HEADERS = (
    *("Retry-After", "Location", "Content-Type"),
    *("Content-Encoding", "Cache-Control", "Expires"),
    # For who reads in the log of deliveries why a target refused.
    *("WWW-Authenticate", "Server", "X-Request-Id"),
)
_MAX_HEADER_CHARACTERS = 1024
# Signed addresses of object stores are long.
_MAX_STREAM_URL = 8000
_OWN_HEADERS = {"User-Agent": f"Hublet/{__version__}", "Accept-Encoding": "identity"}


@dataclass(slots=True)
class _ReceivedResponse:
    """What has arrived so far; it stays when the rest does not come."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)


class _PlainRequest(ClientRequest):
    """Sends no headers of aiohttp's own; naming each to be left out takes longer."""

    DEFAULT_HEADERS: dict[istr, str] = {}  # noqa: RUF012 - as aiohttp declares it.


class OutgoingSession:
    """One session with its pool of open connections."""

    def __init__(
        self, policy: AddressPolicy, resolve: Resolve, tls: ssl.SSLContext, *, per_host: int
    ) -> None:
        self._policy = policy
        self._deadlines = DeadlineWatch()
        self._target = lru_cache(maxsize=4096)(self._find_target)
        self._session = ClientSession(
            connector=GuardedConnector(policy, resolve, tls, per_host=per_host),
            request_class=_PlainRequest,
            cookie_jar=DummyCookieJar(),
            # The deadline is ours: aiohttp's would round up to whole seconds.
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

    async def send(self, request: OutgoingRequest) -> OutgoingResponse:
        times, received = start_timing(), _ReceivedResponse()
        found = self._target(request.url)
        if isinstance(found, str):
            return _build_response(received, times, (FailureReason.blocked_target, found))
        url, target = found
        try:
            with self._deadlines.within(request.deadline_seconds):
                await self._exchange(request, url, times, received)
        except TimeoutError:
            late = explain_timeout(target, times, request.deadline_seconds)
            return _build_response(received, times, (FailureReason.timeout, late))
        except (ClientError, OSError) as error:
            return _build_response(received, times, explain_failure(error, target, times))
        return _build_response(received, times, None)

    def find_stream_target(self, url: str) -> tuple[URL, Destination] | str:
        """Return where the URL of a stream leads; it is sent as it is, since some are signed."""
        return self._find_target(url, max_length=_MAX_STREAM_URL, encoded=True)

    async def request(self, method: str, url: URL, headers: Mapping[str, str]) -> ClientResponse:
        """Send a request without a body; return its response once the head has arrived."""
        return await self._session.request(
            method, url, headers={**_OWN_HEADERS, **headers}, allow_redirects=False
        )

    def _find_target(
        self, url: str, *, max_length: int = MAX_URL, encoded: bool = False
    ) -> tuple[URL, Destination] | str:
        """Return where the URL leads, or the sentence that says why it is not called."""
        try:
            target = parse_destination(url, self._policy, max_length=max_length)
        except UrlRefused as refusal:
            return refusal.reason
        try:
            parsed = URL(url, encoded=encoded)
        except ValueError:
            return "The URL is not valid."
        # What was judged must be what is dialled.
        if (parsed.raw_host, parsed.port) != (target.host, target.port):
            return "The URL can be read in two ways."
        return parsed, target

    async def _exchange(
        self, request: OutgoingRequest, url: URL, times: StageTimes, received: _ReceivedResponse
    ) -> None:
        try:
            await self._exchange_once(request, url, times, received)
        except (ServerDisconnectedError, ClientOSError):
            # A server may close an idle connection in the moment in which we use it. That is
            # no failure of the target, so it gets one more try (RFC 9112, 9.3.1).
            if not times.reused or times.answered is not None:
                raise
            times.connected = None
            await self._exchange_once(request, url, times, received)

    async def _exchange_once(
        self, request: OutgoingRequest, url: URL, times: StageTimes, received: _ReceivedResponse
    ) -> None:
        response = await self._session.request(
            request.method,
            url,
            data=request.body or None,
            headers={**_OWN_HEADERS, **request.headers},
            allow_redirects=False,
        )
        try:
            times.answered = monotonic()
            received.status = response.status
            received.headers = _kept_headers(response)
            await _read_body(response, request, received.body)
        finally:
            # At its end a body gives its connection back by itself; all else is cut off here.
            if not response.closed:
                response.close()


async def _read_body(response: ClientResponse, request: OutgoingRequest, body: bytearray) -> None:
    content, seen = response.content, 0
    while seen < request.read_bytes and not content.at_eof():
        piece = await content.readany()
        seen += len(piece)
        body += piece[: max(0, request.keep_bytes - len(body))]


def _kept_headers(response: ClientResponse) -> dict[str, str]:
    headers = response.headers
    return {name.lower(): _printable(headers[name]) for name in _KEPT_HEADERS if name in headers}


def _printable(text: str) -> str:
    """A stranger wrote it: bytes that are no text must not reach the database or a page."""
    text = text[:_MAX_HEADER_CHARACTERS]
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def _build_response(
    received: _ReceivedResponse, times: StageTimes, failure: tuple[FailureReason, str] | None
) -> OutgoingResponse:
    reason, detail = failure or (None, "")
    return OutgoingResponse(
        status=received.status,
        reason=reason,
        detail=detail,
        body=bytes(received.body),
        headers=received.headers,
        timings=times.timings(),
    )


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
