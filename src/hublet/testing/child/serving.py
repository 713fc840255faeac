"""ASGI switch: hands requests to the hub of the current test."""

import asyncio

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HubSwitch:
    """Hands requests to the hub that plays; none reaches one that has not begun, or has ended."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None
        self._plays = asyncio.Event()
        self._requests: set[asyncio.Task[None]] = set()

    def begin(self, app: ASGIApp) -> None:
        self._app = app
        self._plays.set()

    async def end(self) -> None:
        """Let requests wait for the next hub, and break off those that still run."""
        self._plays.clear()
        self._app = None
        running = set(self._requests)
        for request in running:
            request.cancel()
        if running:
            await asyncio.wait(running)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._plays.wait()
        app, request = self._app, asyncio.current_task()
        assert app is not None  # noqa: S101 - for the type: somebody plays
        assert request is not None  # noqa: S101 - for the type: this is a task
        answer = _ResponseWatch(send)
        self._requests.add(request)
        try:
            await app(scope, receive, answer)
        except asyncio.CancelledError:
            if self._app is app:
                raise
            if not answer.has_begun:
                await _hub_was_reset(scope, receive, send)
        finally:
            self._requests.discard(request)


class _ResponseWatch:
    """Notes whether an answer has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        self.has_begun = True
        await self._send(message)


_hub_was_reset = JSONResponse(
    {"error": "The hub was reset while it worked on this request."},
    status_code=503,
    headers={"Connection": "close"},
)
