"""What a request must pass before its handler sees it: method, size, secret, signature, form."""

from dataclasses import dataclass
from http import HTTPStatus

from starlette.types import Receive, Scope

from hublet.receiver.http.answers import Refused, detail, error, not_allowed
from hublet.receiver.http.handlers import Handler
from hublet.receiver.http.requests import (
    Headers,
    Received,
    headers_of,
    is_json,
    read_body,
    refuse_large,
)
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


async def let_in(rules: Rules, handler: Handler, scope: Scope, receive: Receive) -> Received:
    """Return the request once it has passed every check, the cheap ones first."""
    if scope["method"] != "POST":
        raise Refused(not_allowed("POST"))
    headers = headers_of(scope)
    refuse_large(headers, rules.max_body_bytes)
    is_signed = SIGNATURE_HEADER in headers
    # Without a signature nothing in the body can change the verdict: it is not even read.
    if not is_signed:
        _refuse_strangers(rules, headers, b"")
    body = await read_body(receive, most=rules.max_body_bytes)
    if is_signed:
        _refuse_strangers(rules, headers, body)
    if handler.reads_body and body and not is_json(headers):
        raise Refused(_NOT_JSON)
    return Received(path=handler.path, scope=scope, body=body)


def _refuse_strangers(rules: Rules, headers: Headers, body: bytes) -> None:
    refusal = verify_bytes(
        headers,
        body,
        secrets=rules.secrets,
        require_signature=rules.require_signature,
        tolerance_seconds=rules.tolerance_seconds,
    )
    if refusal is not None:
        raise Refused(error(refusal.status, refusal.reason))


_NOT_JSON = detail(
    HTTPStatus.UNPROCESSABLE_ENTITY,
    [
        {
            "type": "content_type",
            "loc": ["header", "content-type"],
            "msg": "The body must be application/json.",
        }
    ],
)
