"""Headers through the proxy: what is removed and added on the way to the job and back."""

import re
from collections.abc import Collection, Iterable

from hublet.core.dataclasses import dataclass
from hublet.gateway.errors import AmbiguousRequest

Header = tuple[bytes, bytes]

# RFC 9110, 7.6.1: these belong to one connection. The hub has already answered Expect.
_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_REQUEST_ONLY = frozenset(
    {
        b"expect",
        b"forwarded",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-proto",
        b"x-forwarded-port",
        b"x-real-ip",
    }
)
_NOT_TO_THE_JOB = _HOP_BY_HOP | _REQUEST_ONLY | {b"content-length"}
_LENGTH = re.compile(rb"[0-9]{1,18}")
# Upgrades to another form of HTTP, whatever its version or draft.
_STILL_HTTP = re.compile(rb"(?:h2c?|http|tls)(?:[/-]|$)", re.IGNORECASE)
_DOMAIN = re.compile(rb";\s*domain\s*=[^;]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyRequest:
    """A request as it came."""

    method: bytes
    # The path and the query, encoded as they came.
    target: bytes
    # With names in lower case.
    headers: list[Header]

    def all_of(self, name: bytes) -> list[bytes]:
        return [value for each, value in self.headers if each == name]

    def first_of(self, name: bytes) -> bytes | None:
        return next((value for each, value in self.headers if each == name), None)

    @property
    def upgrade(self) -> bytes | None:
        """Return the protocols other than HTTP that the client offers.

        Another form of HTTP does not count: its requests would pass the hub unchecked, with the
        hub's token in them.
        """
        if b"upgrade" not in _tokens(self.all_of(b"connection")):
            return None
        named = [name.strip() for value in self.all_of(b"upgrade") for name in value.split(b",")]
        return b", ".join(name for name in named if name and not _STILL_HTTP.match(name)) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderChanges:
    """Headers that the job must not see, and those that are added."""

    # Whether the Authorization header was for the hub.
    without_authorization: bool
    cookies: Collection[bytes]
    # The client's address behind all trusted proxies, then the scheme and the host.
    forwarded_for: bytes
    scheme: bytes
    host: bytes


def body_length(request: ProxyRequest) -> int | None:
    """Return the length of the body; None: it comes in chunks.

    An ambiguous length is refused, because the job could read it in another way than the hub.
    """
    length = _framed_length(request)
    if length != 0 and request.upgrade is not None:
        raise AmbiguousRequest("it has a body, and asks for another protocol")
    return length


def _framed_length(request: ProxyRequest) -> int | None:
    lengths, codings = request.all_of(b"content-length"), request.all_of(b"transfer-encoding")
    if len(request.all_of(b"host")) > 1:
        raise AmbiguousRequest("it names more than one Host")
    if lengths and codings:
        raise AmbiguousRequest("it has both Content-Length and Transfer-Encoding")
    if codings:
        if [coding.strip().lower() for coding in codings] != [b"chunked"]:
            raise AmbiguousRequest("its Transfer-Encoding is not chunked alone")
        return None
    if len(lengths) > 1 or any(_LENGTH.fullmatch(length) is None for length in lengths):
        raise AmbiguousRequest("its Content-Length is not one number")
    return int(lengths[0]) if lengths else 0


def request_head(request: ProxyRequest, changes: HeaderChanges, *, length: int | None) -> bytes:
    """Return the head for the job, with the same framing of the body, and headers of this hop."""
    dropped = _NOT_TO_THE_JOB | set(_tokens(request.all_of(b"connection")))
    parts = [request.method, b" ", request.target, b" HTTP/1.1\r\n"]
    for name, value in request.headers:
        if name in dropped or (name == b"authorization" and changes.without_authorization):
            continue
        kept = without_cookies(value, changes.cookies) if name == b"cookie" else value
        if kept or name != b"cookie":
            parts += (name, b": ", kept, b"\r\n")
    parts += _hop_headers(request, changes, length)
    return b"".join(parts)


def _hop_headers(request: ProxyRequest, changes: HeaderChanges, length: int | None) -> list[bytes]:
    parts = [
        b"x-forwarded-for: ", changes.forwarded_for,
        b"\r\nx-forwarded-proto: ", changes.scheme,
        b"\r\nx-forwarded-host: ", changes.host,
    ]  # fmt: skip
    if length is None:
        parts.append(b"\r\ntransfer-encoding: chunked")
    elif length or request.first_of(b"content-length") is not None:
        parts.append(b"\r\ncontent-length: %d" % length)
    if request.upgrade is not None:
        parts += (b"\r\nconnection: upgrade\r\nupgrade: ", request.upgrade)
    parts.append(b"\r\n\r\n")
    return parts


def without_cookies(value: bytes, names: Collection[bytes]) -> bytes:
    """Return a Cookie header without the cookies of these names."""
    if not any(name in value for name in names):
        return value
    pairs = [pair.strip() for pair in value.split(b";")]
    return b"; ".join(pair for pair in pairs if pair.partition(b"=")[0].strip() not in names)


def cookie_of(request: ProxyRequest, name: bytes) -> str | None:
    for value in request.all_of(b"cookie"):
        for pair in value.split(b";"):
            key, _, found = pair.strip().partition(b"=")
            if key == name:
                return found.decode("latin-1")
    return None


def response_headers(headers: Iterable[Header], *, has_no_body: bool) -> list[Header]:
    """Return the headers for the client.

    The Domain of a cookie is removed: it would send the cookie to the hosts of other jobs.
    """
    found = [(name.lower(), value) for name, value in headers]
    dropped = _HOP_BY_HOP | set(_tokens(value for name, value in found if name == b"connection"))
    if has_no_body:
        dropped |= {b"content-length"}
    return [
        (name, _DOMAIN.sub(b"", value) if name == b"set-cookie" else value)
        for name, value in found
        if name not in dropped
    ]


def _tokens(values: Iterable[bytes]) -> list[bytes]:
    return [word.strip().lower() for value in values for word in value.split(b",")]
