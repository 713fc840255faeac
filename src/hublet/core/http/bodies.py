"""Bodies that are too large are refused before a route sees them."""

import re

from starlette.types import Message, Receive

from hublet.core.errors import TooLarge

# Addresses whose bodies may be of any size, by method: their routes read them piece by piece
# and hold them to a limit of their own.
_streamed: dict[str, list[re.Pattern[str]]] = {}


def streams(method: str, path: str) -> None:
    """Let the bodies sent to these paths (a regular expression) through unread."""
    _streamed.setdefault(method, []).append(re.compile(path))


def is_streamed(method: str, path: str) -> bool:
    return any(pattern.fullmatch(path) for pattern in _streamed.get(method, ()))


async def bounded(headers: dict[bytes, bytes], receive: Receive, *, largest: int) -> Receive:
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
