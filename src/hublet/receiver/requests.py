"""Requests of the receiver: the checks that a request passes, and its body within the limit."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope

from hublet.receiver.responses import RequestRefused, detail_response, error_response, not_allowed
from hublet.receiver.signatures import SECRET_HEADER, SIGNATURE_HEADER, find_refusal

_CHECKED = {
    name.encode(): name
    for name in (
        *(SECRET_HEADER, SIGNATURE_HEADER, "webhook-id", "webhook-timestamp"),
        *("content-length", "content-type"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    # Without any, everybody may send.
    secrets: tuple[str, ...]
    require_signature: bool
    # How old a signature may be; None: any age.
    tolerance_seconds: float | None
    max_body_bytes: int
    # For the body to arrive and the handler to end; None: no limit.
    timeout_seconds: float | None


def path_in(scope: Scope) -> str:
    """Return the path below the prefix under which the server is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    below = path.removeprefix(root)
    return below if below == path or below.startswith("/") or not below else path


async def check_request(
    rules: Rules, scope: Scope, receive: Receive, *, expects_json: bool
) -> bytes:
    """Return the body of a request that passes every check, the cheap ones first."""
    if scope["method"] != "POST":
        raise RequestRefused(not_allowed("POST"))
    headers = _headers_of(scope)
    _check_length(headers, rules.max_body_bytes)
    is_signed = SIGNATURE_HEADER in headers
    # Without a signature nothing in the body can change the verdict: it is not even read.
    if not is_signed:
        _check_proof(rules, headers, b"")
    body = await _read_body(receive, rules.max_body_bytes)
    if is_signed:
        _check_proof(rules, headers, body)
    if expects_json and body and not _is_json(headers):
        raise RequestRefused(_not_json())
    return body


def request_with_body(scope: Scope, body: bytes) -> Request:
    """Return a request whose body has been read already."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    return Request(scope, receive)


def _headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers that are checked, by their names; of several alike, the first."""
    # Starlette's `Headers` searches the list and decodes anew for each question.
    sent = dict(reversed(scope["headers"]))
    return {name: sent[raw].decode("latin-1") for raw, name in _CHECKED.items() if raw in sent}


def _check_length(headers: Mapping[str, str], max_bytes: int) -> None:
    """Refuse a request that declares too large a body, before any of it is read."""
    length = headers.get("content-length", "0")
    # A longer row of digits is too large anyway, and costs time to convert.
    if length.isdecimal() and int(length[:19]) > max_bytes:
        raise _too_large(max_bytes)


def _check_proof(rules: Rules, headers: Mapping[str, str], body: bytes) -> None:
    refusal = find_refusal(
        headers,
        body,
        secrets=rules.secrets,
        require_signature=rules.require_signature,
        tolerance_seconds=rules.tolerance_seconds,
    )
    if refusal is not None:
        raise RequestRefused(error_response(refusal.status, refusal.reason))


async def _read_body(receive: Receive, max_bytes: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > max_bytes:
            raise _too_large(max_bytes)
        if not message.get("more_body", False):
            return b"".join(pieces)


def _is_json(headers: Mapping[str, str]) -> bool:
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return media_type.startswith("application/") and media_type.endswith(("/json", "+json"))


def _not_json() -> Response:
    return detail_response(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        [
            {
                "type": "content_type",
                "loc": ["header", "content-type"],
                "msg": "The body must be application/json.",
            }
        ],
    )


def _too_large(max_bytes: int) -> RequestRefused:
    sentence = f"The body is larger than {max_bytes} bytes."
    return RequestRefused(error_response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence))
