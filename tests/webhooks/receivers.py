"""Receivers of webhooks on loopback, each with its own way to answer."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from outgoing_servers import Request, Stranger, Talk, serving

Answering = Callable[[Request], bytes]


def answer(status: int, *fields: str, body: str = "") -> bytes:
    head = "".join(f"{field}\r\n" for field in fields)
    return (
        f"HTTP/1.1 {status} Said\r\n{head}Content-Length: {len(body.encode())}\r\n\r\n{body}"
    ).encode()


def receiving(
    answering: Answering | bytes | None = None, *, seconds: float = 0
) -> AbstractAsyncContextManager[Stranger]:
    """Run a receiver that answers each request, after so many seconds."""
    say: Answering = answering if callable(answering) else lambda _: answering or answer(200)

    async def behave(talk: Talk) -> None:
        while True:
            request = await talk.listen()
            if seconds:
                await asyncio.sleep(seconds)
            await talk.say(say(request))

    return serving(behave)


def in_turn(*answers: bytes) -> Answering:
    """Give these answers one after the other, and the last one from then on."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]
