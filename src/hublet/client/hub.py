"""Hub client: requests, pages and event streams of one hub over the standard library's HTTP."""

import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.error import URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import (
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from hublet import __version__
from hublet.client.errors import ClientError, InvalidEndpoint, NotReachable, Refused
from hublet.client.events import Event, EventReader

# The hub sends a sign of life more often than that.
_STREAM_SECONDS = 45.0
_LOOPBACK_HOSTS = {"localhost", "127.0.0.1", "::1"}
_FIRST_ERROR = 300
_FIRST_CLIENT_ERROR = 400

Query = Mapping[str, object]


def read_endpoint(text: str) -> str:
    """Return the address of a hub without the slash at its end."""
    address = text.strip().rstrip("/")
    try:
        parts = urlsplit(address)
        _port = parts.port
    except ValueError:
        raise InvalidEndpoint from None
    plain = parts.scheme in {"http", "https"} and parts.hostname and "@" not in parts.netloc
    if not plain or parts.path or parts.query or parts.fragment or not address.isprintable():
        raise InvalidEndpoint
    return address


def path_of(template: str, **parts: str) -> str:
    """Fill names into a path, as in `path_of("/api/jobs/{owner}", owner=name)`."""
    return template.format(**{name: quote(value, safe="") for name, value in parts.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """A hub and the caller's token; `path` begins with a slash, responses are plain JSON."""

    endpoint: str
    token: str | None = field(default=None, repr=False)
    # Seconds without a byte from the hub.
    timeout: float = 30.0

    def get(self, path: str, query: Query | None = None) -> Any:
        return self.send("GET", path, query=query)

    def post(self, path: str, body: object = None, *, query: Query | None = None) -> Any:
        return self.send("POST", path, body, query=query)

    def put(self, path: str, body: object = None, *, query: Query | None = None) -> Any:
        return self.send("PUT", path, body, query=query)

    def patch(self, path: str, body: object = None, *, query: Query | None = None) -> Any:
        return self.send("PATCH", path, body, query=query)

    def delete(self, path: str, body: object = None, *, query: Query | None = None) -> Any:
        return self.send("DELETE", path, body, query=query)

    def post_for_bytes(self, path: str, body: object) -> bytes:
        """Send JSON and return the answer as it is, such as a file."""
        data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
        with self._open("POST", path, data=data, headers=headers) as response:
            return _read_bytes(response, endpoint=self.endpoint)

    def post_form(self, path: str, fields: Mapping[str, str]) -> Any:
        """Send a form without the token, as OAuth endpoints expect it."""
        data = urlencode(fields).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._exchange("POST", path, data=data, headers=headers, authorized=False)

    def send(
        self, method: str, path: str, body: object = None, *, query: Query | None = None
    ) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        return self._exchange(method, path + _query_string(query), data=data, headers=headers)

    def pages(self, path: str, query: Query | None = None) -> Iterator[Any]:
        """Yield the items of a list; each page is fetched when it is needed."""
        next_page: str | None = path + _query_string(query)
        while next_page is not None:
            with self._open("GET", next_page) as response:
                yield from _read_response(response, endpoint=self.endpoint)
                next_page = _next_page(response.headers.get("Link", ""))

    def events(
        self, path: str, query: Query | None = None, *, reader: EventReader | None = None
    ) -> Iterator[Event]:
        """Yield the events of one connection; it ends when the hub ends it.

        With the reader of a lost connection they continue behind its last event.
        """
        reader = reader or EventReader()
        reader.restart()
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if reader.last_id:
            headers["Last-Event-ID"] = reader.last_id
        address = path + _query_string(query)
        with self._open("GET", address, headers=headers, timeout=_STREAM_SECONDS) as response:
            yield from self._events(response, reader)

    def _events(self, response: HTTPResponse, reader: EventReader) -> Iterator[Event]:
        if response.headers.get_content_type() != "text/event-stream":
            _read_response(response, endpoint=self.endpoint)
            raise NotReachable(self.endpoint, "what answers sent no events")
        while True:
            try:
                line = response.readline()
            except (OSError, HTTPException) as error:
                raise NotReachable(self.endpoint, _failure_reason(error)) from None
            if not line:
                return
            event = reader.feed(line.decode(errors="replace").rstrip("\r\n"))
            if event is not None:
                yield event

    def _exchange(
        self,
        method: str,
        path: str,
        *,
        data: bytes | None,
        headers: Mapping[str, str],
        authorized: bool = True,
    ) -> Any:
        with self._open(
            method, path, data=data, headers=headers, authorized=authorized
        ) as response:
            return _read_response(response, endpoint=self.endpoint)

    def _open(
        self,
        method: str,
        path: str,
        *,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        authorized: bool = True,
    ) -> HTTPResponse:
        sent_headers = {"User-Agent": f"hublet/{__version__}", "Accept": "application/json"}
        sent_headers |= headers or {}
        if authorized and self.token is not None:
            # The library's own error would contain the token.
            if not self.token.isascii() or not self.token.isprintable():
                raise ClientError("The token has characters that no token has.")
            sent_headers["Authorization"] = f"Bearer {self.token}"
        if data is None and method in {"POST", "PUT", "PATCH"}:
            sent_headers["Content-Length"] = "0"
        request = Request(self.endpoint + path, data=data, headers=sent_headers, method=method)  # noqa: S310 - the endpoint is checked to be http or https
        return open_request(request, endpoint=self.endpoint, timeout=timeout or self.timeout)


def _next_page(link: str) -> str | None:
    """Return the path of the next page; the host in a link may not be the one we reached."""
    for part in link.split(","):
        address, _, relation = part.partition(";")
        if 'rel="next"' in relation:
            parts = urlsplit(address.strip().strip("<>"))
            return f"{parts.path}?{parts.query}"
    return None


def _query_string(query: Mapping[str, object] | None) -> str:
    """Return the query string; None is left out, a list repeats its name."""
    pairs: list[tuple[str, str]] = []
    for name, value in (query or {}).items():
        values = value if isinstance(value, list | tuple) else [value]
        pairs += [(name, _query_value(each)) for each in values if each is not None]
    return f"?{urlencode(pairs)}" if pairs else ""


def _query_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def open_request(request: Request, *, endpoint: str, timeout: float) -> HTTPResponse:
    """Send a request and return the response, whatever its status; the caller closes it."""
    try:
        response = _opener(endpoint).open(request, timeout=timeout)
    except (OSError, HTTPException, ValueError) as error:
        raise NotReachable(endpoint, _failure_reason(error)) from None
    assert isinstance(response, HTTPResponse)  # noqa: S101 - there are no other handlers
    return response


def _opener(endpoint: str) -> OpenerDirector:
    """Return an opener that follows no redirect, so that a token is sent to its hub alone."""
    opener = OpenerDirector()
    is_local = urlsplit(endpoint).hostname in _LOOPBACK_HOSTS
    handlers = (
        ProxyHandler({} if is_local else None),
        HTTPHandler(),
        HTTPSHandler(),
        UnknownHandler(),
    )
    for handler in handlers:
        opener.add_handler(handler)
    return opener


def _read_response(response: HTTPResponse, *, endpoint: str) -> Any:
    """Return the JSON of a success; raise what an error response says."""
    body = _read_bytes(response, endpoint=endpoint)
    try:
        return json.loads(body) if body else None
    except ValueError:
        kind = response.headers.get_content_type()
        raise NotReachable(endpoint, f"what answers sent {kind}, not JSON") from None


def _read_bytes(response: HTTPResponse, *, endpoint: str) -> bytes:
    try:
        body = response.read()
    except (OSError, HTTPException) as error:
        raise NotReachable(endpoint, _failure_reason(error)) from None
    if response.status >= _FIRST_ERROR:
        raise _refusal(response, body, endpoint=endpoint)
    return body


def _refusal(response: HTTPResponse, body: bytes, *, endpoint: str) -> Refused:
    fields = _error_fields(body)
    sentence = fields.get("error_description") or fields.get("error") or fields.get("message")
    if isinstance(sentence, list):
        sentence = " ".join(map(str, sentence))
    if not sentence:
        sentence = response.headers.get("X-Error-Message") or _default_sentence(response, endpoint)
    is_oauth = "error_description" in fields
    retry_after = response.headers.get("Retry-After", "")
    return Refused(
        response.status,
        str(sentence),
        code=str(fields["error"]) if is_oauth else response.headers.get("X-Error-Code"),
        request_id=response.headers.get("X-Request-Id"),
        retry_after=int(retry_after) if retry_after.isascii() and retry_after.isdigit() else None,
    )


def _error_fields(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _default_sentence(response: HTTPResponse, endpoint: str) -> str:
    target = response.headers.get("Location")
    if response.status < _FIRST_CLIENT_ERROR and target:
        return f"{endpoint} leads on to {target}: name that address instead."
    return f"The hub at {endpoint} answered {response.status} {response.reason}."


def _failure_reason(error: BaseException) -> str:
    """Return in a few words why no response came."""
    if isinstance(error, URLError) and isinstance(error.reason, BaseException):
        error = error.reason
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, socket.gaierror):
        return "its name is not known"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "the connection broke"
