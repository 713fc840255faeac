"""Responses of the receiver, the deadline of a handler, and the record of recent deliveries."""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from pydantic_core import PydanticSerializationError, to_json
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from hublet.receiver.environment import monotonic, now
from hublet.receiver.signatures import SIGNATURE_HEADER

log = logging.getLogger("hublet.receiver")

# How much of a payload and of an answer the landing page has to show.
SHOWN_BYTES = 65_536
_SIGNATURE = SIGNATURE_HEADER.encode()
# As `hublet.core.lean_protocol` says, which would bring the HTTP server along.
WHOLE_RESPONSE = "hublet.response"
_RESULT_HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\ncontent-type: application/json\r\n"


class RequestRefused(Exception):
    """A request is refused; the response says why."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


class RecentDelivery(NamedTuple):
    # Seconds since 1970.
    at: float
    path: str
    status: int
    milliseconds: float
    # Whether a signature came along; it was good, unless the delivery was refused.
    is_signed: bool
    # The first bytes of what was sent and of the answer; nothing of a sender who was refused.
    payload: bytes
    answer: bytes


class ResultResponse(Response):
    """What a handler returned, as JSON; it leaves in one message where the server takes that."""

    media_type = "application/json"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if WHOLE_RESPONSE in scope.get("extensions", ()):
            head = _RESULT_HEAD % len(self.body)
            await send({"type": WHOLE_RESPONSE, "head": head, "body": self.body})
        else:
            await super().__call__(scope, receive, send)


def json_response(
    content: bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(content, status, headers, media_type="application/json")


def error_response(status: int, sentence: str) -> Response:
    return json_response(to_json({"error": sentence}), status)


def detail_response(status: int, detail: Any, headers: Mapping[str, str] | None = None) -> Response:
    """Respond as FastAPI does: senders may know that from the public library's server."""
    return json_response(to_json({"detail": detail}), status, headers)


def not_found() -> Response:
    return detail_response(HTTPStatus.NOT_FOUND, "Not Found")


def not_allowed(allowed: str) -> Response:
    return detail_response(HTTPStatus.METHOD_NOT_ALLOWED, "Method Not Allowed", {"allow": allowed})


def server_error() -> Response:
    """Respond without the reason, which stands in the log."""
    return PlainTextResponse("Internal Server Error", HTTPStatus.INTERNAL_SERVER_ERROR)


def response_of(result: Any) -> Response:
    """Return the response to what a handler returned."""
    if isinstance(result, Response):
        return result
    try:
        return ResultResponse(to_json(result, inf_nan_mode="null"))
    except (PydanticSerializationError, ValueError):
        log.exception("What a handler returned cannot be written as JSON.")
        return server_error()


class TimedResponder:
    """Sends the first response, the handler's or that of the deadline, and drops the other.

    A handler that takes too long is not cancelled: half of its work done would be worse than all
    of it done late. A timer costs next to nothing, where a task for each handler would not.
    """

    def __init__(
        self,
        path: str,
        exchange: tuple[Scope, Receive, Send],
        recent: deque[RecentDelivery],
        seconds: float | None,
    ) -> None:
        self._path = path
        self._exchange = exchange
        self._recent = recent
        self._seconds = seconds
        self._started_at = monotonic()
        self._late: asyncio.Task[None] | None = None
        self.body: bytes | None = None
        loop = asyncio.get_running_loop()
        self._timer = None if seconds is None else loop.call_later(seconds, self._time_out)

    @property
    def is_timed_out(self) -> bool:
        return self._late is not None

    async def send(self, response: Response) -> None:
        self.cancel_timer()
        if self._late is None:
            await self._send(response)
        else:
            await self._late

    def cancel_timer(self) -> None:
        """Give up the deadline: there is a response, or nobody to send it to."""
        if self._timer is not None:
            self._timer.cancel()

    async def _send(self, response: Response) -> None:
        scope, receive, send = self._exchange
        await response(scope, receive, send)
        if scope["method"] == "POST":
            self._recent.append(
                RecentDelivery(
                    at=now(),
                    path=self._path,
                    status=response.status_code,
                    milliseconds=(monotonic() - self._started_at) * 1000,
                    is_signed=_SIGNATURE in dict(scope["headers"]),
                    payload=(self.body or b"")[:SHOWN_BYTES],
                    answer=getattr(response, "body", b"")[:SHOWN_BYTES],
                )
            )

    def _time_out(self) -> None:
        self._late = asyncio.get_running_loop().create_task(self._send(self._timeout_response()))

    def _timeout_response(self) -> Response:
        if self.body is None:
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
