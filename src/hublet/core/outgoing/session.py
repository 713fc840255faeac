"""Session for outgoing calls: sends requests over kept connections and reads bounded responses.

Loaded with the first call.
"""

import asyncio
import re
import ssl
from collections.abc import Mapping
from functools import lru_cache

from yarl import URL

from hublet import __version__
from hublet.core.clock import monotonic
from hublet.core.dataclasses import dataclass
from hublet.core.outgoing.connection_pool import ConnectionPool
from hublet.core.outgoing.dialer import Dialer, GuardedNames
from hublet.core.outgoing.failures import (
    Failure,
    explain_dial,
    explain_invalid,
    explain_loss,
    explain_timeout,
)
from hublet.core.outgoing.http_connection import (
    ExchangeLost,
    PartialResponse,
    ResponseInvalid,
)
from hublet.core.outgoing.networks import AddressPolicy
from hublet.core.outgoing.records import FailureReason, OutgoingRequest, OutgoingResponse
from hublet.core.outgoing.timings import DeadlineWatch, StageTimes, start_timing
from hublet.core.outgoing.urls import MAX_URL, Destination, UrlRefused, parse_destination

OWN_HEADERS = {"User-Agent": f"Hublet/{__version__}", "Accept-Encoding": "identity"}
_MAX_HEADER_CHARACTERS = 1024
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NO_HEADER_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# These are written here, or say how a message is framed.
_RESERVED_HEADERS = frozenset(
    {"host", "user-agent", "accept-encoding", "content-length", "transfer-encoding"}
    | {"connection", "keep-alive", "upgrade", "te", "trailer", "expect"}
)
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_DEFAULT_PORTS = {False: 80, True: 443}


class DialFailed(Exception):
    """No connection could be made; its cause says why. (A timeout of the system is an OSError, too.)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _KnownTarget:
    """Where a URL leads, and how the head of every request to it goes on after the method."""

    where: Destination
    head: str


class OutgoingSession:
    """One session with its pool of open connections."""

    def __init__(
        self, policy: AddressPolicy, names: GuardedNames, tls: ssl.SSLContext, *, per_host: int
    ) -> None:
        self._policy = policy
        self._deadlines = DeadlineWatch()
        self._target = lru_cache(maxsize=4096)(self._find_target)
        self._pool = ConnectionPool(Dialer(policy, names, tls), per_host=per_host)

    async def close(self) -> None:
        self._pool.close()
        # Transports close their sockets in the next turn of the loop.
        await asyncio.sleep(0)

    async def send(self, request: OutgoingRequest) -> OutgoingResponse:
        times = start_timing()
        response = PartialResponse(
            times, request.keep_bytes, request.read_bytes, is_head_only=request.method == "HEAD"
        )
        known = self._target(request.url)
        if isinstance(known, str):
            return _build_response(response, (FailureReason.blocked_target, known))
        try:
            with self._deadlines.within(request.deadline_seconds):
                await self._exchange(known.where, _request_bytes(known, request), response)
        except TimeoutError:
            late = explain_timeout(known.where, times, request.deadline_seconds)
            return _build_response(response, late)
        except (DialFailed, ExchangeLost, ResponseInvalid) as error:
            return _build_response(response, _explain(error, known.where, times))
        return _build_response(response, None)

    def _find_target(self, url: str) -> _KnownTarget | str:
        found = find_target(url, self._policy)
        if isinstance(found, str):
            return found
        parsed, where = found
        return _KnownTarget(where=where, head=_head_of(parsed, where))

    async def _exchange(self, where: Destination, sent: bytes, response: PartialResponse) -> None:
        try:
            await self._exchange_once(where, sent, response)
        except ExchangeLost:
            # A server may close an idle connection in the moment in which we use it. That is
            # no failure of the target, so it gets one more try (RFC 9112, 9.3.1).
            if not response.times.reused or response.has_begun:
                raise
            response.times.connected = None
            await self._exchange_once(where, sent, response, is_new=True)

    async def _exchange_once(
        self, where: Destination, sent: bytes, response: PartialResponse, *, is_new: bool = False
    ) -> None:
        try:
            connection = await self._pool.acquire(where, is_new=is_new)
        except OSError as error:
            raise DialFailed from error
        try:
            response.times.connected = monotonic()
            await connection.exchange(sent, response)
        finally:
            self._pool.release(where, connection)


def find_target(
    url: str, policy: AddressPolicy, *, max_length: int = MAX_URL, encoded: bool = False
) -> tuple[URL, Destination] | str:
    """Return where the URL leads, or the sentence that says why it is not called."""
    try:
        target = parse_destination(url, policy, max_length=max_length)
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


def _head_of(url: URL, where: Destination) -> str:
    host = where.host.rstrip(".")
    if ":" in host:
        host = f"[{host}]"
    if where.port != _DEFAULT_PORTS[where.secure]:
        host = f"{host}:{where.port}"
    own = "".join(f"{name}: {value}\r\n" for name, value in OWN_HEADERS.items())
    return f" {url.raw_path_qs} HTTP/1.1\r\nHost: {host}\r\n{own}"


def _request_bytes(target: _KnownTarget, request: OutgoingRequest) -> bytes:
    """Render a request. What could begin another header, or another request, is a ValueError."""
    method, headers, body = request.method, request.headers, request.body
    _check_names((method, *headers))
    if _NO_HEADER_VALUE.search("".join(headers.values())):
        raise ValueError("A header has a character that no header may have.")
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    if body or method in _WITH_BODY:
        lines.append(f"Content-Length: {len(body)}\r\n")
    return f"{method}{target.head}{''.join(lines)}\r\n".encode() + body


@lru_cache(maxsize=256)
def _check_names(names: tuple[str, ...]) -> None:
    for name in names:
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a method or header.")
        if name.lower() in _RESERVED_HEADERS:
            raise ValueError(f"The client itself says {name}.")


def _explain(error: Exception, where: Destination, times: StageTimes) -> Failure:
    if isinstance(error, DialFailed):
        return explain_dial(error.__cause__, where)
    if isinstance(error, ResponseInvalid):
        return explain_invalid(where)
    return explain_loss(where, times)


def _printable(header: bytes) -> str:
    """A stranger wrote it: bytes that are no text must not reach the database or a page."""
    text = header.decode(errors="surrogateescape").strip(" \t")[:_MAX_HEADER_CHARACTERS]
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def _kept_headers(headers: Mapping[str, bytes]) -> dict[str, str]:
    return {name: _printable(value) for name, value in headers.items()}


def _build_response(received: PartialResponse, failure: Failure | None) -> OutgoingResponse:
    reason, detail = failure or (None, "")
    has_head = received.status is not None
    return OutgoingResponse(
        status=received.status,
        reason=reason,
        detail=detail,
        body=bytes(received.body),
        # Those of a head that was not complete are nobody's.
        headers=_kept_headers(received.headers) if has_head else {},
        timings=received.times.timings(),
    )
