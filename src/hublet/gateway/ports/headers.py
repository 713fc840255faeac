"""Headers that pass the proxy: to the job without what is the hub's, to the visitor as they are."""

import re
from collections.abc import Collection, Iterable

from hublet.core.light_dataclasses import dataclass
from hublet.gateway.errors import AmbiguousRequest

Header = tuple[bytes, bytes]

# RFC 9110, 7.6.1: these are about one connection. Expect was answered by the hub already.
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
# HTTP in another form, whatever its version or draft.
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
        """Return what else than HTTP the visitor wants to speak.

        Another form of HTTP is not something else: what is asked in it would pass the hub unseen,
        with the hub's token in it.
        """
        if b"upgrade" not in _tokens(self.all_of(b"connection")):
            return None
        named = [name.strip() for value in self.all_of(b"upgrade") for name in value.split(b",")]
        return b", ".join(name for name in named if name and not _STILL_HTTP.match(name)) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderChanges:
    """What the job must not see, and what it is told instead."""

    # Whether the Authorization header was for the hub.
    without_authorization: bool
    cookies: Collection[bytes]
    # The visitor's address behind all proxies that are trusted, the scheme and the host.
    forwarded_for: bytes
    scheme: bytes
    host: bytes


def body_length(asked: ProxyRequest) -> int | None:
    """Return the length of the body; None: it comes in chunks.

    Whatever could be read in two ways is refused, because the job could read it in the other one.
    """
    length = _framed_length(asked)
    if length != 0 and asked.upgrade is not None:
        raise AmbiguousRequest("it has a body, and asks for another protocol")
    return length


def _framed_length(asked: ProxyRequest) -> int | None:
    lengths, codings = asked.all_of(b"content-length"), asked.all_of(b"transfer-encoding")
    if len(asked.all_of(b"host")) > 1:
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


def request_head(asked: ProxyRequest, changes: HeaderChanges, *, length: int | None) -> bytes:
    """Return the head for the job, with the same framing of the body and one about this hop."""
    dropped = _NOT_TO_THE_JOB | set(_tokens(asked.all_of(b"connection")))
    parts = [asked.method, b" ", asked.target, b" HTTP/1.1\r\n"]
    for name, value in asked.headers:
        if name in dropped or (name == b"authorization" and changes.without_authorization):
            continue
        kept = without_cookies(value, changes.cookies) if name == b"cookie" else value
        if kept or name != b"cookie":
            parts += (name, b": ", kept, b"\r\n")
    parts += _hop_headers(asked, changes, length)
    return b"".join(parts)


def _hop_headers(asked: ProxyRequest, changes: HeaderChanges, length: int | None) -> list[bytes]:
    parts = [
        b"x-forwarded-for: ", changes.forwarded_for,
        b"\r\nx-forwarded-proto: ", changes.scheme,
        b"\r\nx-forwarded-host: ", changes.host,
    ]  # fmt: skip
    if length is None:
        parts.append(b"\r\ntransfer-encoding: chunked")
    elif length or asked.first_of(b"content-length") is not None:
        parts.append(b"\r\ncontent-length: %d" % length)
    if asked.upgrade is not None:
        parts += (b"\r\nconnection: upgrade\r\nupgrade: ", asked.upgrade)
    parts.append(b"\r\n\r\n")
    return parts


def without_cookies(value: bytes, names: Collection[bytes]) -> bytes:
    """Return a Cookie header without those of these names."""
    if not any(name in value for name in names):
        return value
    pairs = [pair.strip() for pair in value.split(b";")]
    return b"; ".join(pair for pair in pairs if pair.partition(b"=")[0].strip() not in names)


def cookie_of(asked: ProxyRequest, name: bytes) -> str | None:
    for value in asked.all_of(b"cookie"):
        for pair in value.split(b";"):
            key, _, found = pair.strip().partition(b"=")
            if key == name:
                return found.decode("latin-1")
    return None


def response_headers(headers: Iterable[Header], *, has_no_body: bool) -> list[Header]:
    """Return the headers for the visitor.

    Cookies of a job are for its own host: a domain around it would reach the hosts of others.
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
