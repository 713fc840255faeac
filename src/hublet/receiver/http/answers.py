"""Answers, each an ASGI application that sends itself."""

import logging
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from pydantic_core import PydanticSerializationError, to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

log = logging.getLogger("hublet.receiver")

_JSON = b"application/json"
# Looking it up in the enumeration takes as long as all the rest of an answer.
_OK = int(HTTPStatus.OK)


class Answer:
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


Reply = Answer | Response


class Refused(Exception):
    """A request that goes no further. The answer says why."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status_code)
        self.answer = answer


def error(status: int, sentence: str) -> Answer:
    return Answer(status, to_json({"error": sentence}))


def detail(status: int, told: Any, headers: Mapping[str, str] | None = None) -> Answer:
    """Answer as FastAPI does, whose answers senders may know from the public library's server."""
    pairs = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    return Answer(status, to_json({"detail": told}), headers=pairs)


def not_found() -> Answer:
    return detail(HTTPStatus.NOT_FOUND, "Not Found")


def not_allowed(allowed: str) -> Answer:
    return detail(HTTPStatus.METHOD_NOT_ALLOWED, "Method Not Allowed", {"allow": allowed})


def failed() -> Answer:
    """Say nothing of the reason: it stands in the log."""
    body = b"Internal Server Error"
    return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, body, media_type=b"text/plain; charset=utf-8")


def reply_with(result: Any) -> Reply:
    """Answer with what a handler returned."""
    if isinstance(result, Response):
        return result
    try:
        return Answer(_OK, to_json(result, inf_nan_mode="null"))
    except (PydanticSerializationError, ValueError):
        log.exception("What a handler returned cannot be written as JSON.")
        return failed()
