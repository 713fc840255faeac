"""ASGI application of the receiver: routes a request to its handler, or to the page."""

import logging
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

from pydantic_core import to_json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from hublet.receiver.environment import monotonic
from hublet.receiver.handlers import (
    Handler,
    HandlerCall,
    name_of,
    respond,
    run_background,
    run_to_end,
)
from hublet.receiver.pages import (
    PAYLOADS,
    SecretState,
    ask_for_secret,
    knows_secret,
    landing_page,
    public_address,
    serve_at_root,
)
from hublet.receiver.requests import (
    Rules,
    check_request,
    path_in,
)
from hublet.receiver.responses import (
    RecentDelivery,
    RequestRefused,
    TimedResponder,
    json_response,
    server_error,
)
from hublet.receiver.spool import Spool, spooled_delivery, spooled_scope
from hublet.receiver.spool_store import SpooledDelivery

log = logging.getLogger("hublet.receiver")

# How many deliveries the landing page lists.
_RECENT = 20


class ReceiverApplication:
    def __init__(self, rules: Rules, ui: ASGIApp | None, spool: Path | None) -> None:
        self.rules = rules
        self._page = serve_at_root(self._serve_landing_page) if ui is None else ui
        self._handlers: dict[str, Handler] = {}
        self._recent: deque[RecentDelivery] = deque(maxlen=_RECENT)
        self._in_flight = 0
        self.spool = None if spool is None else Spool(spool, self._handle_spooled)
        # When the last request or the last work ended, on the monotonic clock.
        self.active_at = monotonic()

    def add(self, path: str, function: Callable[..., object]) -> None:
        self._handlers[path] = Handler.of(path, function)

    @property
    def is_busy(self) -> bool:
        return self._in_flight > 0 or (self.spool is not None and self.spool.is_busy)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._in_flight += 1
        try:
            if self.spool is not None:
                await self.spool.start()
            await self._route(scope, receive, send)
        finally:
            self._in_flight -= 1
            self.active_at = monotonic()

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = path_in(scope)
        if (handler := self._handlers.get(path)) is not None:
            await self._receive(handler, scope, receive, send)
        elif path.rstrip("/") in self._handlers:
            await _redirect_without_slash(scope)(scope, receive, send)
        else:
            await self._page(scope, receive, send)

    async def _serve_landing_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        # A server that is open to everyone has nobody to show them to.
        with_payloads = PAYLOADS in request.query_params and bool(self.rules.secrets)
        if with_payloads and not knows_secret(request, self.rules.secrets):
            await ask_for_secret()(scope, receive, send)
            return
        page = landing_page(
            public_address(request),
            {path: name_of(each.function) for path, each in self._handlers.items()},
            reversed(self._recent),
            SecretState(
                known=len(self.rules.secrets), requires_signature=self.rules.require_signature
            ),
            with_payloads=with_payloads,
        )
        await page(scope, receive, send)

    async def _receive(self, handler: Handler, scope: Scope, receive: Receive, send: Send) -> None:
        responder = TimedResponder(
            handler.path, (scope, receive, send), self._recent, self.rules.timeout_seconds
        )
        call: HandlerCall | None = None
        try:
            body = await check_request(self.rules, scope, receive, expects_json=handler.reads_body)
            responder.body = body
            if responder.is_timed_out:
                return
            call = handler.prepare(scope, body)
            response = await self._respond(call, scope, body)
        except RequestRefused as refused:
            response = refused.response
        except ClientDisconnect:
            responder.cancel_timer()
            return
        await responder.send(response)
        if self.spool is None and call is not None:
            await run_background(call)

    async def _respond(self, call: HandlerCall, scope: Scope, body: bytes) -> Response:
        if self.spool is None:
            return await respond(call)
        path = call.handler.path
        try:
            delivery = spooled_delivery(path, scope, body)
            is_new = await self.spool.put(delivery)
        except Exception:
            log.exception("A delivery to %s could not be kept.", path)
            return server_error()
        accepted = {"accepted": True, "id": delivery.delivery_id, "duplicate": not is_new}
        return json_response(to_json(accepted), HTTPStatus.ACCEPTED)

    async def _handle_spooled(self, delivery: SpooledDelivery) -> bool:
        """Run the handler of a delivery from the spool; return whether all of it went well."""
        try:
            return await self._run_spooled(delivery)
        finally:
            self.active_at = monotonic()

    async def _run_spooled(self, delivery: SpooledDelivery) -> bool:
        handler = self._handlers.get(delivery.path)
        if handler is None:
            log.error("There is no handler for %s any more.", delivery.path)
            return False
        scope = spooled_scope(delivery)
        try:
            call = handler.prepare(scope, delivery.body)
        except RequestRefused:
            log.exception("The handler of %s cannot read what was kept for it.", delivery.path)
            return False
        return await run_to_end(call, scope)


def _redirect_without_slash(scope: Scope) -> Response:
    # Client contract 2.3; the query goes along.
    path = quote(scope["path"].rstrip("/"))
    query: str = scope["query_string"].decode("latin-1")
    return RedirectResponse(f"{path}?{query}" if query else path)
