"""Bodies that are too large are refused before a route sees them."""

from starlette.types import Message, Receive

from hublet.core.errors import TooLarge


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
