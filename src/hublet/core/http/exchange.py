"""Exchange: state of one request at the edge: client address, body limit, quota, caller."""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import TYPE_CHECKING, Any

from starlette.types import Message, Receive

from hublet.core.clock import monotonic
from hublet.core.config import Settings
from hublet.core.errors import TooLarge
from hublet.core.hub import ProcessState
from hublet.core.ids import new_request_id
from hublet.core.limits import Limiter, RateLimit, RateLimitVerdict, raise_when_exceeded
from hublet.core.logs import redact_text

if TYPE_CHECKING:
    from starlette.requests import Request

# A replica is not asked by who wrote in this time.
WROTE_LATELY_SECONDS = 5.0
_MOST_WRITERS = 10_000

ProxyNetwork = IPv4Network | IPv6Network


def client_address(peer: str, forwarded_for: str | None, *, trusted: Sequence[ProxyNetwork]) -> str:
    """Walk the proxies from the nearest on; the first that is not trusted is the client.

    A value that is not an address ends the walk, so a forged header changes nothing.
    """
    if not trusted or forwarded_for is None or not _is_trusted(peer, trusted):
        return peer
    address = peer
    for hop in reversed(forwarded_for.split(",")):
        candidate = hop.strip()
        try:
            ip_address(candidate)
        except ValueError:
            return address
        address = candidate
        if not _is_trusted(address, trusted):
            return address
    return address


def _is_trusted(address: str, trusted: Sequence[ProxyNetwork]) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in trusted)


# Of the forms that clients and proxies use, such as Root=1-67891233-abcdef012345678912345678.
_CLIENT_ID = re.compile(rb"[A-Za-z0-9._:;,=/+@-]{1,128}")


def request_id_of(headers: Mapping[bytes, bytes]) -> str:
    """Return the id that the client gave its request, if that may stand in a log, else our own."""
    given = headers.get(b"x-request-id") or headers.get(b"x-amzn-trace-id")
    if given is None or not _CLIENT_ID.fullmatch(given):
        return new_request_id()
    text = given.decode("ascii")
    # Every credential has a _ in it, and most ids have none.
    return new_request_id() if "_" in text and redact_text(text) != text else text


# Addresses whose bodies may be of any size, by method: their routes read them piece by piece
# and hold them to a limit of their own.
_streamed_paths: dict[str, list[re.Pattern[str]]] = {}


def allow_streaming(method: str, path: str) -> None:
    """Let the bodies sent to these paths (a regular expression) through unread."""
    _streamed_paths.setdefault(method, []).append(re.compile(path))


def is_streamed(method: str, path: str) -> bool:
    return any(pattern.fullmatch(path) for pattern in _streamed_paths.get(method, ()))


async def limit_body(headers: dict[bytes, bytes], receive: Receive, *, largest: int) -> Receive:
    """Refuse a body that is too large; read one of unknown length up to the limit."""
    length = headers.get(b"content-length")
    if length is not None:
        if length.isdigit() and int(length) > largest:
            raise _too_large(largest)
        return receive
    if b"transfer-encoding" not in headers:
        return receive
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > largest:
            raise _too_large(largest)
        if not message.get("more_body"):
            return _replay({**message, "body": bytes(body)}, receive)


def _too_large(largest: int) -> TooLarge:
    return TooLarge(f"The body must have at most {largest} bytes.")


def _replay(message: Message, receive: Receive) -> Receive:
    waiting: list[Message] = [message]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


class RequestQuotas:
    def __init__(self, settings: Settings, process: ProcessState | None = None) -> None:
        limits = settings.limits
        self._limiter = Limiter(quiet=settings.server.test_mode, process=process)
        self._anonymous = RateLimit(
            name="api", quota=limits.anonymous_requests, window_seconds=limits.window_seconds
        )
        self._authenticated = RateLimit(
            name="api", quota=limits.authenticated_requests, window_seconds=limits.window_seconds
        )

    def count(self, *, user: str | None, address: str) -> RateLimitVerdict:
        """Count a request, for the address unless its user is known already."""
        if user is not None:
            return self._limiter.count(self._authenticated, user)
        # Unknown tokens count for the address they come from: guessing is limited too.
        return self._limiter.count(self._anonymous, address)

    def take_back(self, *, user: str | None, address: str) -> None:
        """Forget what `count` counted last: the same request is counted once more."""
        if user is not None:
            self._limiter.refund(self._authenticated, user)
        else:
            self._limiter.refund(self._anonymous, address)

    def recount(self, *, user: str, address: str) -> RateLimitVerdict:
        """Count a request for its user, once that is known, and no longer for the address.

        Many people may share an address, and none of them uses up what guessers have.
        """
        self._limiter.refund(self._anonymous, address)
        verdict = self._limiter.count(self._authenticated, user)
        raise_when_exceeded(verdict)
        return verdict


class RecentWriters:
    """Addresses that changed something a moment ago, by this process: a replica may not know of it yet."""

    def __init__(self) -> None:
        self._wrote_at: OrderedDict[str, float] = OrderedDict()

    def note(self, address: str) -> None:
        self._wrote_at[address] = monotonic()
        self._wrote_at.move_to_end(address)
        if len(self._wrote_at) > _MOST_WRITERS:
            self._wrote_at.popitem(last=False)

    def has(self, address: str) -> bool:
        return (
            monotonic() < self._wrote_at.get(address, -WROTE_LATELY_SECONDS) + WROTE_LATELY_SECONDS
        )


@dataclass(slots=True)
class Exchange:
    request_id: str
    address: str
    # As sent, such as "Bearer hf_…"; never written to a log.
    authorization: str | None
    # Who calls, if that is known before any route; the edge knows only that it has a user_name.
    known_caller: Any | None
    user: str | None
    # Whether a browser asks for a script of another origin.
    has_origin: bool = False
    verdict: RateLimitVerdict | None = None
    status: int = 0
    bytes_out: int = 0
    started: bool = False
    finished: bool = False
    # Whether the answer's body is dropped on the way out; who makes a large one need not.
    without_body: bool = False
    quotas: RequestQuotas | None = None
    # Whether the address wrote a moment ago, where that matters.
    wrote_lately: bool = False
    # Called when the hub stops, for answers that have no end of their own.
    on_stop: Callable[[], None] | None = None

    def identify(self, user: str) -> None:
        """Note whose request it is; from now on it counts for that user."""
        if self.user is None and self.quotas is not None:
            self.verdict = self.quotas.recount(user=user, address=self.address)
        self.user = user


def exchange_of(request: "Request") -> Exchange:
    exchange = request.scope["exchange"]
    assert isinstance(exchange, Exchange)  # noqa: S101 - the edge is always outermost
    return exchange
