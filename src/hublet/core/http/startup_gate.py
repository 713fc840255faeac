"""Startup gate: the application of a process until its own is loaded (decision 0024).

Liveness is answered, readiness is denied, and every other request waits. It knows nothing of the web
framework, which takes half of a start to load.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from hublet.core.config import Settings
from hublet.core.errors import Unavailable
from hublet.core.http.exchange import request_id_of
from hublet.core.http.headers import Headers, ResponseHeaders

_STARTING = "This process is starting: send requests to another one, or wait a moment."
_STOPPED = "This process stopped while it started."


class StartupGate:
    """ASGI application that holds requests until `open`, and from then on only passes them."""

    def __init__(self, settings: Settings, *, is_of_job: Callable[[bytes], bool]) -> None:
        """`is_of_job` tells whether a Host header is for a port of a job and not for the hub."""
        self._app: ASGIApp | None = None
        self._answer_now: Callable[[Scope], bytes | None] | None = None
        self._is_decided = asyncio.Event()
        self._is_of_job = is_of_job
        self._added = ResponseHeaders(https=settings.base_url.startswith("https://"))

    def open(self, app: ASGIApp) -> None:
        self._app = app
        self._answer_now = getattr(app, "answer_now", None)
        self._is_decided.set()

    def close(self) -> None:
        """Refuse what still waits, when there will be no application."""
        self._is_decided.set()

    def answer_now(self, scope: Scope) -> bytes | None:
        """Let the application answer without waiting, once there is one that can."""
        return None if self._answer_now is None else self._answer_now(scope)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        # No function of its own for each request of a running hub.
        app = self._hold if self._app is None else self._app
        return app(scope, receive, send)

    async def _hold(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        is_health = scope["path"] in {"/healthz", "/readyz"} and scope["method"] in {"GET", "HEAD"}
        if is_health and not self._is_of_job(headers.get(b"host", b"")):
            if scope["path"] == "/healthz":
                await self._respond(scope, send, headers, 200, b'{"status":"ok"}')
            else:
                await self._refuse(scope, send, headers, _STARTING)
            return
        await self._is_decided.wait()
        if self._app is None:
            await self._refuse(scope, send, headers, _STOPPED)
        else:
            await self._app(scope, receive, send)

    async def _refuse(
        self, scope: Scope, send: Send, headers: Mapping[bytes, bytes], sentence: str
    ) -> None:
        error = Unavailable(sentence)
        own = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
        own += [(b"x-error-code", error.code.encode())] if error.code else []
        own.append((b"x-error-message", sentence.encode()))
        body = b'{"error":"%b"}' % sentence.encode()
        await self._respond(scope, send, headers, error.status, body, own)

    async def _respond(
        self,
        scope: Scope,
        send: Send,
        headers: Mapping[bytes, bytes],
        status: int,
        body: bytes,
        own: Headers | None = None,
    ) -> None:
        said = [
            *(own or ()),
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
        ]
        added = self._added.of(said, scope["path"], request_id_of(headers), None)
        await send({"type": "http.response.start", "status": status, "headers": added})
        await send({"type": "http.response.body", "body": body})
