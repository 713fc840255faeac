"""Response headers that the edge adds: security, CORS, date, request id, rate limits."""

import re
from email.utils import formatdate

from hublet.core.clock import micros
from hublet.core.http.exchange import Exchange
from hublet.core.limits import RateLimitVerdict

Headers = list[tuple[bytes, bytes]]

_CORS_PATHS = ("/api/", "/oauth/", "/.well-known/")
# Downloads and large files lie under the names of repositories.
_CORS_PARTS = ("/resolve/", "/raw/", "/info/lfs/")
# The CAS of a repository, and the data there.
_CORS_CAS = re.compile(r"/cas/[0-9a-f]{24}-[0-9]+/")

_NO_SNIFFING = (b"x-content-type-options", b"nosniff")
# What only a page that a person looks at has a use for.
_FOR_PAGES: Headers = [
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
]
_HTTPS_ONLY = (b"strict-transport-security", b"max-age=31536000")
# What a page sets for itself; everything else is data that no browser should run or keep.
_UNLESS_SET: Headers = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
]
_EXPOSED = (
    b"Accept-Ranges, Content-Range, ETag, Link, RateLimit, RateLimit-Policy, Retry-After, "
    b"X-Error-Code, X-Error-Message, X-Linked-Etag, X-Linked-Size, X-Poll-Interval, "
    b"X-Repo-Commit, X-Request-Id, X-Xet-Access-Token, X-Xet-Cas-Url, X-Xet-Hash, "
    b"X-Xet-Token-Expiration"
)
# Bearer tokens are sent by scripts on purpose, so any origin may call; cookies never count here.
_CORS: Headers = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", _EXPOSED),
]
_ALLOWED = b"Authorization, Content-Type, If-None-Match, Range, X-Xet-Session-Id"
PREFLIGHT: Headers = [
    (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE"),
    (b"access-control-allow-headers", _ALLOWED),
    (b"access-control-max-age", b"86400"),
    (b"content-length", b"0"),
]


def allows_other_origins(path: str) -> bool:
    if path.startswith(_CORS_PATHS) or any(part in path for part in _CORS_PARTS):
        return True
    return _CORS_CAS.match(path) is not None


_OK = b"HTTP/1.1 200 OK\r\n"


def _lines_of(headers: Headers) -> bytes:
    return b"".join(b"%b: %b\r\n" % pair for pair in headers)


class ResponseHeaders:
    """Adds headers that a response lacks; lists that never change are built once.

    Few and short: the server checks each header's name and value once more.
    """

    def __init__(self, *, https: bool) -> None:
        self._always = [_NO_SNIFFING, _HTTPS_ONLY] if https else [_NO_SNIFFING]
        # The response of a fast route is always JSON of the API, and never cached: it need not be
        # the same for a script of another origin and for everybody else.
        self._fast = [(b"content-type", b"application/json"), *self._always, *_UNLESS_SET]
        self._fast_for_others = [*self._fast, *_CORS]
        self._fast_start = _OK + _lines_of(self._fast)
        self._cors_lines = _lines_of(_CORS)
        self._second = 0
        self._date = (b"date", b"")
        self._date_line = b""

    def _now(self) -> tuple[bytes, bytes]:
        """Return the date of this very second, by the clock that answers are stamped with.

        The public client takes a line of a log for one of the future when it is later than this;
        the server's own date may be a second old, and knows nothing of a clock that was moved.
        """
        second = micros() // 1_000_000
        if second != self._second:
            self._second = second
            self._date = (b"date", formatdate(second, usegmt=True).encode())
            self._date_line = _lines_of([self._date])
        return self._date

    def of(
        self, own: Headers, path: str, request_id: str, verdict: RateLimitVerdict | None
    ) -> Headers:
        headers = [*own, *self._always, (b"x-request-id", request_id.encode()), self._now()]
        names = {name for name, _ in own}
        for_others = allows_other_origins(path)
        added = _UNLESS_SET if for_others else [*_FOR_PAGES, *_UNLESS_SET]
        headers += [pair for pair in added if pair[0] not in names]
        if for_others:
            headers += _CORS
        if verdict is not None and b"ratelimit" not in names:
            headers += verdict.raw_headers()
        return headers

    def of_fast_response(
        self, body: bytes, exchange: Exchange, verdict: RateLimitVerdict
    ) -> Headers:
        return [
            *(self._fast_for_others if exchange.has_origin else self._fast),
            (b"content-length", b"%d" % len(body)),
            (b"x-request-id", exchange.request_id.encode()),
            self._now(),
            *verdict.raw_headers(),
        ]

    def head_of_fast_response(
        self, length: int, exchange: Exchange, verdict: RateLimitVerdict
    ) -> bytes:
        """Return the same as the lines of a head, for a server that takes one as a whole.

        Nobody looks at them again: of all their values only the request id may come from a client,
        and `request_id_of` lets none through that could not stand in a header.
        """
        self._now()
        return b"%b%bcontent-length: %d\r\nx-request-id: %b\r\n%b%b" % (
            self._fast_start,
            self._cors_lines if exchange.has_origin else b"",
            length,
            exchange.request_id.encode(),
            self._date_line,
            verdict.head_lines(),
        )
