"""Hub client: methods for requests, pages and event streams of one hub."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request

from hublet import __version__
from hublet.client.errors import ClientError, InvalidEndpoint, NotReachable
from hublet.client.events import Event, EventReader
from hublet.client.transport import open_request, query_of, read_response, reason_of

# The hub gives a sign of life more often than that.
_STREAM_SECONDS = 45.0

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
    """Where the hub is and who asks; `path` begins with a slash, answers are plain JSON."""

    endpoint: str
    token: str | None = field(default=None, repr=False)
    # Seconds without a sign of life.
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

    def post_form(self, path: str, fields: Mapping[str, str]) -> Any:
        """Send a form, as OAuth endpoints want it; no token goes along."""
        data = urlencode(fields).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._exchange("POST", path, data=data, headers=headers, authorized=False)

    def send(
        self, method: str, path: str, body: object = None, *, query: Query | None = None
    ) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        return self._exchange(method, path + query_of(query), data=data, headers=headers)

    def pages(self, path: str, query: Query | None = None) -> Iterator[Any]:
        """Yield the items of a list, fetching page after page as they are wanted."""
        following: str | None = path + query_of(query)
        while following is not None:
            with self._open("GET", following) as answer:
                yield from read_response(answer, endpoint=self.endpoint)
                following = _next_page(answer.headers.get("Link", ""))

    def events(
        self, path: str, query: Query | None = None, *, reader: EventReader | None = None
    ) -> Iterator[Event]:
        """Yield the events of one connection; it ends when the hub ends it.

        With the reader of a connection that broke they go on behind its last event.
        """
        reader = reader or EventReader()
        reader.restart()
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if reader.last_id:
            headers["Last-Event-ID"] = reader.last_id
        address = path + query_of(query)
        with self._open("GET", address, headers=headers, timeout=_STREAM_SECONDS) as answer:
            yield from self._events(answer, reader)

    def _events(self, answer: HTTPResponse, reader: EventReader) -> Iterator[Event]:
        if answer.headers.get_content_type() != "text/event-stream":
            read_response(answer, endpoint=self.endpoint)
            raise NotReachable(self.endpoint, "what answers sent no events")
        while True:
            try:
                line = answer.readline()
            except (OSError, HTTPException) as error:
                raise NotReachable(self.endpoint, reason_of(error)) from None
            if not line:
                return
            event = reader.take(line.decode(errors="replace").rstrip("\r\n"))
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

        with self._open(method, path, data=data, headers=headers, authorized=authorized) as answer:
            return read_response(answer, endpoint=self.endpoint)

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
        sent = {"User-Agent": f"hublet/{__version__}", "Accept": "application/json"}
        sent |= headers or {}
        if authorized and self.token is not None:
            # The library would name the token in its own error.
            if not self.token.isascii() or not self.token.isprintable():
                raise ClientError("The token has characters that no token has.")
            sent["Authorization"] = f"Bearer {self.token}"
        if data is None and method in {"POST", "PUT", "PATCH"}:
            sent["Content-Length"] = "0"
        request = Request(self.endpoint + path, data=data, headers=sent, method=method)  # noqa: S310 - the endpoint is checked to be http or https
        return open_request(request, endpoint=self.endpoint, timeout=timeout or self.timeout)


def _next_page(link: str) -> str | None:
    """Return the path of the next page: its host is what the hub calls itself, not what we do."""
    for part in link.split(","):
        address, _, relation = part.partition(";")
        if 'rel="next"' in relation:
            parts = urlsplit(address.strip().strip("<>"))
            return f"{parts.path}?{parts.query}"
    return None
