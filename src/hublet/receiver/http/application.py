"""The receiver's ASGI application: from the path to the handler, one check after the other."""

import logging
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

from pydantic_core import to_json
from starlette.types import ASGIApp, Receive, Scope, Send

from hublet.receiver.activity import Activity
from hublet.receiver.http.answering import Answering
from hublet.receiver.http.answers import (
    Answer,
    Refused,
    Reply,
    failed,
    not_allowed,
    not_found,
)
from hublet.receiver.http.checks import Rules, let_in
from hublet.receiver.http.handlers import Call, Handler, perform
from hublet.receiver.http.landing import address_of, landing_page
from hublet.receiver.http.requests import Gone, Received, path_in
from hublet.receiver.http.spooling import delivery_of, received_of
from hublet.receiver.http.working import finish, work_off
from hublet.receiver.spool.records import Spooled
from hublet.receiver.spool.worker import Spool
from hublet.receiver.surroundings import monotonic

log = logging.getLogger("hublet.receiver")


class Application:
    def __init__(self, rules: Rules, ui: ASGIApp | None, spool: Path | None) -> None:
        self.rules = rules
        self._ui = ui
        self._handlers: dict[str, Handler] = {}
        self._activity = Activity()
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
            await _without_slash(scope)(scope, receive, send)
        elif self._ui is not None:
            await self._ui(scope, receive, send)
        elif path not in {"", "/"}:
            await not_found()(scope, receive, send)
        elif scope["method"] not in {"GET", "HEAD"}:
            await not_allowed("GET")(scope, receive, send)
        else:
            await self._landing_page(scope)(scope, receive, send)

    def _landing_page(self, scope: Scope) -> Answer:
        return landing_page(
            address_of(scope),
            self._handlers,
            self._activity.newest_first(),
            is_open=not self.rules.secrets,
        )

    async def _receive(self, handler: Handler, scope: Scope, receive: Receive, send: Send) -> None:
        answering = Answering(
            handler.path, (scope, receive, send), self._activity, self.rules.timeout_seconds
        )
        call: Call | None = None
        try:
            received = await let_in(self.rules, handler, scope, receive)
            answering.has_body = True
            if answering.is_over:
                return
            call = handler.prepare(received)
            reply = await self._answer(call, received)
        except Refused as refused:
            reply = refused.answer
        except Gone:
            answering.stop()
            return
        await answering.send(reply)
        if self.spool is None and call is not None:
            await finish(call)

    async def _answer(self, call: Call, received: Received) -> Reply:
        if self.spool is None:
            return await perform(call)
        try:
            delivery = delivery_of(received)
            is_new = await self.spool.put(delivery)
        except Exception:
            log.exception("A delivery to %s could not be kept.", received.path)
            return failed()
        return accepted(delivery, is_new=is_new)

    async def _work(self, spooled: Spooled) -> bool:
        """Do the work of a delivery out of the spool."""
        try:
            return await self._work_off(spooled)
        finally:
            self.active_at = monotonic()

    async def _work_off(self, spooled: Spooled) -> bool:
        handler = self._handlers.get(spooled.path)
        if handler is None:
            log.error("There is no handler for %s any more.", spooled.path)
            return False
        try:
            received = received_of(spooled)
            call = handler.prepare(received)
        except Refused:
            log.exception("The handler of %s cannot read what was kept for it.", spooled.path)
            return False
        return await work_off(call, received.scope)


def accepted(delivery: Spooled, *, is_new: bool) -> Answer:
    told = {"accepted": True, "id": delivery.delivery_id, "duplicate": not is_new}
    return Answer(HTTPStatus.ACCEPTED, to_json(told))


def _without_slash(scope: Scope) -> Answer:
    # Client contract 2.3; the query goes along.
    place = quote(scope["path"].rstrip("/")).encode()
    query: bytes = scope["query_string"]
    location = place + (b"?" + query if query else b"")
    return Answer(HTTPStatus.TEMPORARY_REDIRECT, b"", headers=[(b"location", location)])
