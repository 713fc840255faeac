"""Answers that go on: server-sent events, until the client leaves or the hub stops."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from hublet.core.http.exchange import exchange_of

_MEDIA_TYPE = "text/event-stream"

# For the `responses` of a route that answers with an `EventStream`.
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events, as they happen; a comment now and then in between.",
        # No schema: tools hold each event to it, and OpenAPI 3.1 has no word for events.
        "content": {_MEDIA_TYPE: {}},
    }
}


class EventStream(StreamingResponse):
    """Sends events as they come. What makes them is told when the hub stops, and then ends."""

    def __init__(self, request: Request, events: Callable[..., AsyncGenerator[str]]) -> None:
        exchange, stopping = exchange_of(request), asyncio.Event()
        exchange.on_stop = stopping.set
        # Who asks only for the headers would wait for an end that never comes.
        self._events = _none() if exchange.without_body else events(stopping=stopping)
        # Proxies such as nginx would gather the events until there are many.
        headers = {"X-Accel-Buffering": "no"}
        super().__init__(self._events, media_type=_MEDIA_TYPE, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._events):
            await super().__call__(scope, receive, send)


async def _none() -> AsyncGenerator[str]:
    return
    yield
