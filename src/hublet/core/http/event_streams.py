"""Server-sent events: responses that go on until the client leaves or the hub stops."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any

from fastapi import Header
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from hublet.core.database import Database
from hublet.core.database.engine import CREDENTIALS_CHANNEL
from hublet.core.errors import HubError
from hublet.core.http.exchange import exchange_of

_MEDIA_TYPE = "text/event-stream"

# The wake-up by another process may be lost.
_BACK_STOP_SECONDS = 15.0
_LEAST_PAUSE_SECONDS = 0.25

CheckAccess = Callable[[], Awaitable[object]]

LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        pattern="^[0-9]{1,16}$",
        description="The `id` of the last event that was heard.",
    ),
]

# For the `responses` of a route that answers with an `EventStream`.
EVENT_STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events, as they happen; a comment now and then in between.",
        # No schema: tools hold each event to it, and OpenAPI 3.1 has no word for events.
        "content": {_MEDIA_TYPE: {}},
    }
}


class EventStream(StreamingResponse):
    """Sends events as they come, until the generator ends, the hub stops or access is refused."""

    def __init__(
        self,
        request: Request,
        events: Callable[..., AsyncGenerator[str]],
        *,
        check_access: CheckAccess,
    ) -> None:
        """`events` gets `check_access`, to call it now and then, and `stopping`, to end when set.

        `check_access` raises a HubError when the listener may not listen any more.
        """
        exchange, stopping = exchange_of(request), asyncio.Event()
        exchange.on_stop = stopping.set
        self._refused = partial(_stop_when_refused, request, check_access, stopping)
        begin = partial(events, check_access=check_access, stopping=stopping)
        # A HEAD request would wait for an end that never comes.
        self._events = _no_events() if exchange.without_body else _until_refused(begin())
        # Proxies such as nginx would gather the events until there are many.
        headers = {"X-Accel-Buffering": "no"}
        super().__init__(self._events, media_type=_MEDIA_TYPE, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        watching = asyncio.create_task(self._refused(), name="access")
        try:
            async with aclosing(self._events):
                await super().__call__(scope, receive, send)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def _stop_when_refused(
    request: Request, check_access: CheckAccess, stopping: asyncio.Event
) -> None:
    """End a stream soon after its listener loses a credential, a role or the account."""
    database: Database = request.app.state.database
    with database.subscribe(CREDENTIALS_CHANNEL) as changes:
        while True:
            await changes.wait(timeout=_BACK_STOP_SECONDS)
            try:
                await check_access()
            except HubError:
                stopping.set()
                return
            # Changes may come by the hundred; they are looked at together.
            await asyncio.sleep(_LEAST_PAUSE_SECONDS)


async def _until_refused(events: AsyncGenerator[str]) -> AsyncGenerator[str]:
    """Yield events until the access is gone or the database is away.

    It is too late for a response that says so; the client comes back and gets one then.
    """
    async with aclosing(events):
        try:
            async for event in events:
                yield event
        except HubError:
            return


async def _no_events() -> AsyncGenerator[str]:
    return
    yield
