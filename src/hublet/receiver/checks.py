"""Checks of a request before its handler runs: method, size, secret, signature, content type."""

from dataclasses import dataclass
from http import HTTPStatus

from starlette.types import Receive, Scope

from hublet.receiver.handlers import Handler
from hublet.receiver.requests import (
    Headers,
    ReceivedRequest,
    headers_of,
    is_json,
    read_body,
    refuse_large,
)
from hublet.receiver.responses import RequestRefused, detail_response, error_response, not_allowed
from hublet.receiver.signatures import SIGNATURE_HEADER, verify_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    # Without any, everybody is let in.
    secrets: tuple[str, ...]
    require_signature: bool
    # How old a signature may be; None: as old as it likes.
    tolerance_seconds: float | None
    max_body_bytes: int
    # For the body to arrive and the handler to end; None: for ever.
    timeout_seconds: float | None


async def accept(rules: Rules, handler: Handler, scope: Scope, receive: Receive) -> ReceivedRequest:
    """Return the request once it has passed every check, the cheap ones first."""
    if scope["method"] != "POST":
        raise RequestRefused(not_allowed("POST"))
    headers = headers_of(scope)
    refuse_large(headers, rules.max_body_bytes)
    is_signed = SIGNATURE_HEADER in headers
    # Without a signature nothing in the body can change the verdict: it is not even read.
    if not is_signed:
        _refuse_unsigned(rules, headers, b"")
    body = await read_body(receive, most=rules.max_body_bytes)
    if is_signed:
        _refuse_unsigned(rules, headers, body)
    if handler.reads_body and body and not is_json(headers):
        raise RequestRefused(_NOT_JSON)
    return ReceivedRequest(path=handler.path, scope=scope, body=body)


def _refuse_unsigned(rules: Rules, headers: Headers, body: bytes) -> None:
    refusal = verify_bytes(
        headers,
        body,
        secrets=rules.secrets,
        require_signature=rules.require_signature,
        tolerance_seconds=rules.tolerance_seconds,
    )
    if refusal is not None:
        raise RequestRefused(error_response(refusal.status, refusal.reason))


_NOT_JSON = detail_response(
    HTTPStatus.UNPROCESSABLE_ENTITY,
    [
        {
            "type": "content_type",
            "loc": ["header", "content-type"],
            "msg": "The body must be application/json.",
        }
    ],
)
