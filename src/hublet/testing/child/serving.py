"""ASGI switch: passes requests to the hub of the current test."""

import asyncio

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HubSwitch:
    """Passes requests to the current hub, and holds them between two hubs."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None
        self._is_open = asyncio.Event()
        self._requests: set[asyncio.Task[None]] = set()

    def open(self, app: ASGIApp) -> None:
        self._app = app
        self._is_open.set()

    async def close(self) -> None:
        """Hold requests for the next hub, and cancel those that still run."""
        self._is_open.clear()
        self._app = None
        running = set(self._requests)
        for request in running:
            request.cancel()
        if running:
            await asyncio.wait(running)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._is_open.wait()
        app, request = self._app, asyncio.current_task()
        assert app is not None  # noqa: S101 - for the type: a hub is there
        assert request is not None  # noqa: S101 - for the type: this is a task
        watch = _ResponseWatch(send)
        self._requests.add(request)
        try:
            await app(scope, receive, watch)
        except asyncio.CancelledError:
            if self._app is app:
                raise
            if not watch.has_started:
                await _hub_was_reset(scope, receive, send)
        finally:
            self._requests.discard(request)


class _ResponseWatch:
    """Records whether a response has started."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_started = False

    async def __call__(self, message: Message) -> None:
        self.has_started = True
        await self._send(message)


_hub_was_reset = JSONResponse(
    {"error": "The hub was reset while it worked on this request."},
    status_code=503,
    headers={"Connection": "close"},
)
