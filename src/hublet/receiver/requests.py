"""Requests of the receiver: path, headers, and the body within its limit."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from hublet.receiver.responses import RequestRefused, error_response

Headers = Mapping[bytes, bytes]


class SenderDisconnected(Exception):
    """The sender hung up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    """A request that is wholly here. `path` is the handler's, wherever the server is mounted."""

    path: str
    scope: Scope
    body: bytes

    def as_request(self) -> Request:
        return Request(self.scope, _replay_body(self.body))


def path_in(scope: Scope) -> str:
    """Return the path below the place where the server is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    below = path.removeprefix(root)
    return below if below == path or below.startswith("/") or not below else path


def headers_of(scope: Scope) -> Headers:
    """Return the headers by their names in lower case; of several alike, the first."""
    return dict(reversed(scope["headers"]))


def is_json(headers: Headers) -> bool:
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return kind.startswith(b"application/") and kind.endswith((b"/json", b"+json"))


def refuse_large(headers: Headers, most: int) -> None:
    """Refuse what says itself that it is too large, before any of it is read."""
    length = headers.get(b"content-length", b"0")
    # More digits than these nobody has to count.
    if length.isdigit() and int(length[:19]) > most:
        raise _too_large(most)


async def read_body(receive: Receive, *, most: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise SenderDisconnected
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return b"".join(pieces)


def _too_large(most: int) -> RequestRefused:
    return RequestRefused(
        error_response(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body is larger than {most} bytes."
        )
    )


def _replay_body(body: bytes) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    return receive
