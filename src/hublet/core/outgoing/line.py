"""Sending over aiohttp; loaded with the first call, because it takes long to import."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

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
from hublet.core.outgoing import failures
from hublet.core.outgoing.deadlines import DeadlineWatch
from hublet.core.outgoing.dialling import GuardedConnector
from hublet.core.outgoing.journey import Journey, begin
from hublet.core.outgoing.lookups import Resolve
from hublet.core.outgoing.networks import Policy
from hublet.core.outgoing.records import Answer, Outgoing, Reason
from hublet.core.outgoing.targets import Target, TargetRefused, read_target

MAX_HEADERS = 100
MAX_HEADER_BYTES = 8190
_BUFFER_BYTES = 16_384
_SHOWN_HEADERS = (
    *("Retry-After", "Location", "Content-Type"),
    *("Content-Encoding", "Cache-Control", "Expires"),
)
_SHOWN_CHARACTERS = 1024
_OWN_HEADERS = {"User-Agent": f"Hublet/{__version__}", "Accept-Encoding": "identity"}


@dataclass(slots=True)
class _Received:
    """What has arrived so far; it stays when the rest does not come."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)


class _PlainRequest(ClientRequest):
    """Sends no headers of aiohttp's own; naming each to be left out takes longer."""

    DEFAULT_HEADERS: dict[istr, str] = {}  # noqa: RUF012 - as aiohttp declares it.


class Line:
    """One session with its pool of open connections."""

    def __init__(
        self, policy: Policy, resolve: Resolve, tls: ssl.SSLContext, *, per_host: int
    ) -> None:
        self._policy = policy
        self._deadlines = DeadlineWatch()
        self._place = lru_cache(maxsize=4096)(self._find_place)
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

    async def send(self, request: Outgoing) -> Answer:
        journey, received = begin(), _Received()
        place = self._place(request.url)
        if isinstance(place, str):
            return _answer(received, journey, (Reason.blocked_target, place))
        url, target = place
        try:
            with self._deadlines.within(request.deadline_seconds):
                await self._exchange(request, url, journey, received)
        except TimeoutError:
            late = failures.explain_timeout(target, journey, request.deadline_seconds)
            return _answer(received, journey, (Reason.timeout, late))
        except (ClientError, OSError) as error:
            return _answer(received, journey, failures.explain(error, target, journey))
        return _answer(received, journey, None)

    def _find_place(self, url: str) -> tuple[URL, Target] | str:
        """Return where the URL leads, or the sentence that tells why it is not called."""
        try:
            target = read_target(url, self._policy)
        except TargetRefused as refusal:
            return refusal.reason
        try:
            parsed = URL(url)
        except ValueError:
            return "The URL is not valid."
        # What was judged must be what is dialled.
        if (parsed.raw_host, parsed.port) != (target.host, target.port):
            return "The URL can be read in two ways."
        return parsed, target

    async def _exchange(
        self, request: Outgoing, url: URL, journey: Journey, received: _Received
    ) -> None:
        try:
            await self._exchange_once(request, url, journey, received)
        except (ServerDisconnectedError, ClientOSError):
            # A server may close an idle connection in the moment in which we use it. That is
            # no failure of the target, so it gets one more try (RFC 9112, 9.3.1).
            if not journey.reused or journey.answered is not None:
                raise
            journey.connected = None
            await self._exchange_once(request, url, journey, received)

    async def _exchange_once(
        self, request: Outgoing, url: URL, journey: Journey, received: _Received
    ) -> None:
        response = await self._session.request(
            request.method,
            url,
            data=request.body or None,
            headers={**_OWN_HEADERS, **request.headers},
            allow_redirects=False,
        )
        try:
            journey.answered = monotonic()
            received.status = response.status
            received.headers = _shown(response)
            await _read(response, request, received.body)
        finally:
            # At its end a body gives its connection back by itself; all else is cut off here.
            if not response.closed:
                response.close()


async def _read(response: ClientResponse, request: Outgoing, body: bytearray) -> None:
    content, seen = response.content, 0
    while seen < request.read_bytes and not content.at_eof():
        piece = await content.readany()
        seen += len(piece)
        body += piece[: max(0, request.keep_bytes - len(body))]


def _shown(response: ClientResponse) -> dict[str, str]:
    headers = response.headers
    return {name.lower(): _printable(headers[name]) for name in _SHOWN_HEADERS if name in headers}


def _printable(text: str) -> str:
    """A stranger wrote it: bytes that are no text must not reach the database or a page."""
    text = text[:_SHOWN_CHARACTERS]
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def _answer(received: _Received, journey: Journey, failure: tuple[Reason, str] | None) -> Answer:
    reason, detail = failure or (None, "")
    return Answer(
        status=received.status,
        reason=reason,
        detail=detail,
        body=bytes(received.body),
        headers=received.headers,
        timings=journey.timings(),
    )
