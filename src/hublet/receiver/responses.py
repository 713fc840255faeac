"""Responses of the receiver, their deadline, and the list of recent ones."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from pydantic_core import PydanticSerializationError, to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hublet.receiver.environment import monotonic, now

_KEPT = 20


class RecentDelivery(NamedTuple):
    # Seconds since 1970.
    at: float
    path: str
    status: int
    milliseconds: float


class RecentDeliveries:
    def __init__(self) -> None:
        self._seen: deque[RecentDelivery] = deque(maxlen=_KEPT)

    def note(self, seen: RecentDelivery) -> None:
        self._seen.append(seen)

    def newest_first(self) -> Iterator[RecentDelivery]:
        return reversed(self._seen)


log = logging.getLogger("hublet.receiver")

_JSON = b"application/json"
# Looking it up in the enumeration takes as long as all the rest of an answer.
_OK = int(HTTPStatus.OK)


class PlainResponse:
    """A whole body with its status; a good deal lighter than a `Response`."""

    __slots__ = ("body", "headers", "status_code")

    def __init__(
        self,
        status_code: int,
        body: bytes,
        *,
        media_type: bytes = _JSON,
        headers: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        self.status_code = status_code
        self.body = body
        self.headers = [
            (b"content-type", media_type),
            (b"content-length", b"%d" % len(body)),
            *headers,
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.headers}
        )
        body = b"" if scope["method"] == "HEAD" else self.body
        await send({"type": "http.response.body", "body": body})


AnyResponse = PlainResponse | Response


class RequestRefused(Exception):
    """A request that goes no further. The answer says why."""

    def __init__(self, answer: PlainResponse) -> None:
        super().__init__(answer.status_code)
        self.answer = answer


def error_response(status: int, sentence: str) -> PlainResponse:
    return PlainResponse(status, to_json({"error": sentence}))


def detail_response(
    status: int, told: Any, headers: Mapping[str, str] | None = None
) -> PlainResponse:
    """Answer as FastAPI does, whose answers senders may know from the public library's server."""
    pairs = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    return PlainResponse(status, to_json({"detail": told}), headers=pairs)


def not_found() -> PlainResponse:
    return detail_response(HTTPStatus.NOT_FOUND, "Not Found")


def not_allowed(allowed: str) -> PlainResponse:
    return detail_response(HTTPStatus.METHOD_NOT_ALLOWED, "Method Not Allowed", {"allow": allowed})


def server_error() -> PlainResponse:
    """Say nothing of the reason: it stands in the log."""
    body = b"Internal Server Error"
    return PlainResponse(
        HTTPStatus.INTERNAL_SERVER_ERROR, body, media_type=b"text/plain; charset=utf-8"
    )


def response_of(result: Any) -> AnyResponse:
    """Answer with what a handler returned."""
    if isinstance(result, Response):
        return result
    try:
        return PlainResponse(_OK, to_json(result, inf_nan_mode="null"))
    except (PydanticSerializationError, ValueError):
        log.exception("What a handler returned cannot be written as JSON.")
        return server_error()


class TimedResponder:
    """Sends the first answer there is, and drops what comes later.

    A handler that takes too long is not cancelled: half of its work done would be worse than all
    of it done late. A timer costs next to nothing, where a task for each handler would not.
    """

    __slots__ = ("_activity", "_begun", "_exchange", "_late", "_path", "_seconds", "_timer", "has_body")  # fmt: skip

    def __init__(
        self,
        path: str,
        exchange: tuple[Scope, Receive, Send],
        activity: RecentDeliveries,
        seconds: float | None,
    ) -> None:
        self._path = path
        self._exchange = exchange
        self._activity = activity
        self._seconds = seconds
        self._begun = monotonic()
        self._late: asyncio.Task[None] | None = None
        self.has_body = False
        loop = asyncio.get_running_loop()
        self._timer = None if seconds is None else loop.call_later(seconds, self._hurry)

    @property
    def is_over(self) -> bool:
        return self._late is not None

    async def send(self, reply: AnyResponse) -> None:
        self.stop()
        if self._late is None:
            await self._send(reply)
        else:
            await self._late

    def stop(self) -> None:
        """Wait no longer: there is an answer, or nobody to send it to."""
        if self._timer is not None:
            self._timer.cancel()

    async def _send(self, reply: AnyResponse) -> None:
        scope, receive, send = self._exchange
        await reply(scope, receive, send)
        if scope["method"] == "POST":
            took = (monotonic() - self._begun) * 1000
            self._activity.note(RecentDelivery(now(), self._path, reply.status_code, took))

    def _hurry(self) -> None:
        self._late = asyncio.get_running_loop().create_task(self._send(self._apology()))

    def _apology(self) -> PlainResponse:
        if not self.has_body:
            sentence = f"The body did not arrive within {self._seconds:g} seconds."
            return error_response(HTTPStatus.REQUEST_TIMEOUT, sentence)
        log.warning(
            "The handler of %s takes longer than %g seconds; it goes on, but the sender was told "
            "to come again. With a spool, it would have all the time it needs.",
            self._path,
            self._seconds,
        )
        sentence = f"The handler did not end within {self._seconds:g} seconds."
        return error_response(HTTPStatus.GATEWAY_TIMEOUT, sentence)
