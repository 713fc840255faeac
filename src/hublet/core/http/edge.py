"""Edge: outermost ASGI middleware, for what holds for every request before any route."""

import time
from collections.abc import Callable, Coroutine
from contextvars import Token
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hublet.core.config import called_address
from hublet.core.errors import HubError, InvalidRequest, NotFound, TooLarge
from hublet.core.http.error_responses import (
    hub_error_response,
    negotiate_error,
    unexpected_response,
)
from hublet.core.http.exchange import (
    Exchange,
    RecentWriters,
    RequestQuotas,
    client_address,
    is_streamed,
    limit_body,
    request_id_of,
)
from hublet.core.http.headers import PREFLIGHT, ResponseHeaders, allows_other_origins
from hublet.core.http.routers import FastHandler, FastRoutes
from hublet.core.hub import Hub
from hublet.core.lean_protocol import WHOLE_RESPONSE
from hublet.core.limits import raise_when_exceeded
from hublet.core.logs import AccessLog, get_logger
from hublet.core.metrics import Metrics

log = get_logger("http")

_READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_BODY_HEADERS = frozenset({b"content-length", b"transfer-encoding"})
_UNLIMITED_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})

# Returns the caller of an Authorization header if that is known without a query.
KnownCaller = Callable[[str], Any | None]


class Edge:
    """Request ids, limits, HEAD, CORS, added headers, access log, and the last error net."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hub: Hub,
        fast_routes: FastRoutes,
        known_caller: KnownCaller,
        access_log: AccessLog | None,
        metrics: Metrics,
    ) -> None:
        self._app = app
        self._routes = fast_routes
        self._known_caller = known_caller
        self._access_log = access_log
        self._metrics = metrics
        settings = hub.settings
        self._trusted = settings.server.trusted_proxies
        self._largest_body = settings.limits.body_bytes
        self._quotas = RequestQuotas(settings, hub.process)
        self._writers = None if settings.database.replica_url is None else RecentWriters()
        self._local_urls = settings.local_urls()
        self._added = ResponseHeaders(https=settings.base_url.startswith("https://"))

    def answer_now(self, scope: Scope) -> bytes | None:
        """Return the whole response to a request that has to wait for nothing; None: it has to.

        So far nothing has happened then that counts, and the request takes the usual way, where its
        errors are told as well.
        """
        handler = self._routes.immediate.get((scope["method"], scope["path"]))
        if handler is None:
            return None
        start = time.perf_counter_ns()
        headers = dict(scope["headers"])
        exchange = scope["exchange"] = self._open(scope, headers)
        if exchange.known_caller is None or not _BODY_HEADERS.isdisjoint(headers):
            return None
        called = self._note_called(headers)
        try:
            self._check(scope, exchange)
            scope["app"] = self._app
            body = _finish_now(handler(Request(scope)))
        except Exception:  # noqa: BLE001 - it comes again, and is handled where the others are.
            body = None
        finally:
            _forget(called)
        if body is None:
            self._quotas.take_back(user=exchange.user, address=exchange.address)
            return None
        head = self._begin(body, exchange)
        self._close(scope, exchange, (time.perf_counter_ns() - start) // 1000)
        return b"%b\r\n%b" % (head, body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter_ns()
        headers = dict(scope["headers"])
        called = self._note_called(headers)
        exchange = scope["exchange"] = self._open(scope, headers)
        answer = self._answering(scope, exchange, send)
        if scope["method"] == "HEAD":
            # Routes answer GET; the body is dropped on the way out. The server keeps its own view.
            scope = {**scope, "method": "GET"}
            exchange.without_body = True
        try:
            receive = await self._admit(scope, headers, receive)
            await self._answer(scope, receive, answer, send)
        except HubError as error:
            response = await self._refuse(scope, receive, error)
            await response(scope, receive, answer)
        except Exception:
            log.exception("unexpected error", request_id=exchange.request_id, path=scope["path"])
            if exchange.started and not exchange.finished:
                raise
            if not exchange.started:
                response = unexpected_response(exchange.request_id, path=scope["path"])
                await response(scope, receive, answer)
        finally:
            _forget(called)
            self._close(scope, exchange, (time.perf_counter_ns() - start) // 1000)

    def _note_called(self, headers: dict[bytes, bytes]) -> Token[str | None] | None:
        if not self._local_urls:
            return None
        return called_address.set(self._local_urls.get(headers.get(b"host", b"")))

    async def _admit(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive) -> Receive:
        """Check the request; return what reads its body, of which there may be no more than this."""
        self._check(scope, scope["exchange"])
        if _BODY_HEADERS.isdisjoint(headers) or is_streamed(scope["method"], scope["path"]):
            return receive
        return await limit_body(headers, receive, largest=self._largest_body)

    async def _answer(self, scope: Scope, receive: Receive, answer: Send, send: Send) -> None:
        handler = self._routes.handlers.get((scope["method"], scope["path"]))
        if handler is None:
            await self._dispatch(scope, receive, answer)
        elif (body := await self._run(handler, scope, receive, answer)) is not None:
            await self._send(body, scope, answer, send)

    async def _refuse(self, scope: Scope, receive: Receive, error: HubError) -> Response:
        if not isinstance(error, TooLarge):
            # A page costs queries, and one who asks too often gets none.
            return hub_error_response(error, path=scope["path"])
        # Somebody has sent a long form, and looks at a page.
        scope["app"] = self._app
        return await negotiate_error(Request(scope, receive), error)

    def _open(self, scope: Scope, headers: dict[bytes, bytes]) -> Exchange:
        raw, address = headers.get(b"authorization"), self._address(scope)
        authorization = None if raw is None else raw.decode("latin-1")
        caller = None if authorization is None else self._known_caller(authorization)
        return Exchange(
            request_id=request_id_of(headers),
            address=address,
            authorization=authorization,
            known_caller=caller,
            user=None if caller is None else caller.user_name,
            has_origin=b"origin" in headers,
            wrote_lately=self._writers is not None and self._writers.has(address),
        )

    def _address(self, scope: Scope) -> str:
        peer = scope["client"][0] if scope.get("client") else "unknown"
        if not self._trusted:
            return peer
        forwarded = [v.decode("latin-1") for k, v in scope["headers"] if k == b"x-forwarded-for"]
        return client_address(peer, ",".join(forwarded) or None, trusted=self._trusted)

    def _check(self, scope: Scope, exchange: Exchange) -> None:
        if scope["path"] not in _UNLIMITED_PATHS:
            exchange.quotas = self._quotas
            exchange.verdict = self._quotas.count(user=exchange.user, address=exchange.address)
            if not exchange.verdict.allowed:
                raise_when_exceeded(exchange.verdict)
        # PostgreSQL cannot even be asked for it.
        if b"%00" in scope.get("raw_path", b""):
            raise NotFound("There is nothing at an address with the NUL character.")
        if b"%00" in scope["query_string"]:
            raise InvalidRequest("The query must not contain the NUL character.")

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "OPTIONS" and allows_other_origins(scope["path"]):
            await send({"type": "http.response.start", "status": 204, "headers": PREFLIGHT})
            await send({"type": "http.response.body"})
        else:
            await self._app(scope, receive, send)

    async def _run(
        self, handler: FastHandler, scope: Scope, receive: Receive, answer: Send
    ) -> bytes | None:
        """Run a fast route; return its JSON, or None when it was a response that is sent."""
        scope["app"] = self._app
        body = await handler(Request(scope, receive))
        if not isinstance(body, Response):
            return body
        await body(scope, receive, answer)
        return None

    async def _send(self, body: bytes, scope: Scope, answer: Send, send: Send) -> None:
        """Send the JSON of a fast route: at once to the hub's own server, else as usual."""
        exchange = scope["exchange"]
        if WHOLE_RESPONSE not in scope.get("extensions", ()):
            await answer({"type": "http.response.start", "status": 200, "fast": body})
            await answer({"type": "http.response.body", "body": body})
            return
        head = self._begin(body, exchange)
        await send({"type": WHOLE_RESPONSE, "status": 200, "head": head, "body": body})

    def _begin(self, body: bytes, exchange: Exchange) -> bytes:
        """Note that the JSON of a fast route is sent as a whole; return its head."""
        exchange.started = exchange.finished = True
        exchange.status = 200
        exchange.bytes_out = 0 if exchange.without_body else len(body)
        assert exchange.verdict is not None  # noqa: S101 - no fast route is without a limit.
        return self._added.head_of_fast_response(len(body), exchange, exchange.verdict)

    def _answering(self, scope: Scope, exchange: Exchange, send: Send) -> Send:
        """Return a `send` that adds what every answer carries, and drops the body for HEAD."""
        path, without_body = scope["path"], scope["method"] == "HEAD"

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.started = True
                exchange.status = message["status"]
                await send(self._start(message, path, exchange))
                return
            exchange.finished = not message.get("more_body")
            if without_body:
                message = {**message, "body": b""}
            exchange.bytes_out += len(message.get("body", b""))
            await send(message)

        return answer

    def _start(self, message: Message, path: str, exchange: Exchange) -> Message:
        body, verdict = message.get("fast"), exchange.verdict
        if body is not None and verdict is not None:
            headers = self._added.of_fast_response(body, exchange, verdict)
        else:
            own = list(message.get("headers", ()))
            headers = self._added.of(own, path, exchange.request_id, verdict)
        return {"type": "http.response.start", "status": message["status"], "headers": headers}

    def _close(self, scope: Scope, exchange: Exchange, micros: int) -> None:
        method, path = scope["method"], scope["path"]
        if self._writers is not None and method not in _READING_METHODS:
            self._writers.note(exchange.address)
        route = (
            path
            if (method, path) in self._routes.handlers
            else getattr(scope.get("route"), "path", "none")
        )
        self._metrics.request(method=method, route=route, status=exchange.status, micros=micros)
        if self._access_log is not None:
            self._access_log.write(
                method=method,
                path=path,
                status=exchange.status,
                micros=micros,
                bytes_out=exchange.bytes_out,
                request_id=exchange.request_id,
                address=exchange.address,
                user=exchange.user,
            )


def _forget(called: Token[str | None] | None) -> None:
    if called is not None:
        called_address.reset(called)


def _finish_now(running: Coroutine[Any, Any, bytes | Response]) -> bytes | None:
    """Return the JSON of a fast route; None: it has to wait, or returns another response."""
    try:
        running.send(None)
    except StopIteration as done:
        return done.value if isinstance(done.value, bytes) else None
    running.close()
    return None
