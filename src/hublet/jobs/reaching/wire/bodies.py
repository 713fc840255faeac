"""The body of a request on its way to the job, as it comes."""

from collections.abc import Awaitable, Callable
from typing import Any

from hublet.jobs.reaching.wire.upstream import Upstream

Receive = Callable[[], Awaitable[Any]]


class VisitorLeft(Exception):
    """Nobody waits for the answer any more."""


async def carry(
    receive: Receive, upstream: Upstream, *, length: int | None, when_sent: Callable[[], None]
) -> None:
    """Send the body to the job, in chunks where its length is not known, then wait for the end.

    Raises VisitorLeft; it never returns otherwise.
    """
    more = length != 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise VisitorLeft
        if not more:
            continue
        body, more = message.get("body", b""), message.get("more_body", False)
        data = body if length is not None else chunk(body, is_last=not more)
        if data:
            await upstream.send(data)
        if not more:
            when_sent()


def chunk(body: bytes, *, is_last: bool) -> bytes:
    framed = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
    return framed + b"0\r\n\r\n" if is_last else framed
