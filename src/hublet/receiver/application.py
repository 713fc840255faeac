"""ASGI application of the receiver: routes a request to its handler or page."""

import logging
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

from pydantic_core import to_json
from starlette.types import ASGIApp, Receive, Scope, Send

from hublet.receiver.checks import Rules, accept
from hublet.receiver.environment import monotonic
from hublet.receiver.handlers import Handler, HandlerCall, respond, run_background, run_to_end
from hublet.receiver.pages import address_of, landing_page
from hublet.receiver.requests import ReceivedRequest, SenderDisconnected, path_in
from hublet.receiver.responses import (
    AnyResponse,
    PlainResponse,
    RecentDeliveries,
    RequestRefused,
    TimedResponder,
    not_allowed,
    not_found,
    server_error,
)
from hublet.receiver.spool import Spool, from_spooled, to_spooled
from hublet.receiver.spool_store import SpooledDelivery

log = logging.getLogger("hublet.receiver")


class ReceiverApplication:
    def __init__(self, rules: Rules, ui: ASGIApp | None, spool: Path | None) -> None:
        self.rules = rules
        self._ui = ui
        self._handlers: dict[str, Handler] = {}
        self._activity = RecentDeliveries()
        self._in_flight = 0
        self.spool = None if spool is None else Spool(spool, self._work)
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
        elif self._ui is not None:
            await self._ui(scope, receive, send)
        elif path not in {"", "/"}:
            await not_found()(scope, receive, send)
        elif scope["method"] not in {"GET", "HEAD"}:
            await not_allowed("GET")(scope, receive, send)
        else:
            await self._landing_page(scope)(scope, receive, send)

    def _landing_page(self, scope: Scope) -> PlainResponse:
        return landing_page(
            address_of(scope),
            self._handlers,
            self._activity.newest_first(),
            is_open=not self.rules.secrets,
        )

    async def _receive(self, handler: Handler, scope: Scope, receive: Receive, send: Send) -> None:
        answering = TimedResponder(
            handler.path, (scope, receive, send), self._activity, self.rules.timeout_seconds
        )
        call: HandlerCall | None = None
        try:
            received = await accept(self.rules, handler, scope, receive)
            answering.has_body = True
            if answering.is_over:
                return
            call = handler.prepare(received)
            reply = await self._answer(call, received)
        except RequestRefused as refused:
            reply = refused.answer
        except SenderDisconnected:
            answering.stop()
            return
        await answering.send(reply)
        if self.spool is None and call is not None:
            await run_background(call)

    async def _answer(self, call: HandlerCall, received: ReceivedRequest) -> AnyResponse:
        if self.spool is None:
            return await respond(call)
        try:
            delivery = to_spooled(received)
            is_new = await self.spool.put(delivery)
        except Exception:
            log.exception("A delivery to %s could not be kept.", received.path)
            return server_error()
        return accepted(delivery, is_new=is_new)

    async def _work(self, spooled: SpooledDelivery) -> bool:
        """Do the work of a delivery out of the spool."""
        try:
            return await self._work_off(spooled)
        finally:
            self.active_at = monotonic()

    async def _work_off(self, spooled: SpooledDelivery) -> bool:
        handler = self._handlers.get(spooled.path)
        if handler is None:
            log.error("There is no handler for %s any more.", spooled.path)
            return False
        try:
            received = from_spooled(spooled)
            call = handler.prepare(received)
        except RequestRefused:
            log.exception("The handler of %s cannot read what was kept for it.", spooled.path)
            return False
        return await run_to_end(call, received.scope)


def accepted(delivery: SpooledDelivery, *, is_new: bool) -> PlainResponse:
    told = {"accepted": True, "id": delivery.delivery_id, "duplicate": not is_new}
    return PlainResponse(HTTPStatus.ACCEPTED, to_json(told))


def _redirect_without_slash(scope: Scope) -> PlainResponse:
    # Client contract 2.3; the query goes along.
    place = quote(scope["path"].rstrip("/")).encode()
    query: bytes = scope["query_string"]
    location = place + (b"?" + query if query else b"")
    return PlainResponse(HTTPStatus.TEMPORARY_REDIRECT, b"", headers=[(b"location", location)])
