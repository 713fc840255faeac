"""HTTP transport: sends one request and turns a bad response into an error."""

import json
import socket
from collections.abc import Mapping
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import (
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from hublet.client.errors import NotReachable, Refused

_LOOPBACK_HOSTS = {"localhost", "127.0.0.1", "::1"}
_FIRST_ERROR = 300
_FIRST_CLIENT_ERROR = 400


def query_of(query: Mapping[str, object] | None) -> str:
    """Return the part behind the path; what is None is left out, a list repeats its name."""
    pairs: list[tuple[str, str]] = []
    for name, value in (query or {}).items():
        values = value if isinstance(value, list | tuple) else [value]
        pairs += [(name, _text(each)) for each in values if each is not None]
    return f"?{urlencode(pairs)}" if pairs else ""


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def open_request(request: Request, *, endpoint: str, timeout: float) -> HTTPResponse:
    """Send a request and return the answer, whatever its status; it is the caller's to close."""
    try:
        answer = _opener(endpoint).open(request, timeout=timeout)
    except (OSError, HTTPException, ValueError) as error:
        raise NotReachable(endpoint, reason_of(error)) from None
    assert isinstance(answer, HTTPResponse)  # noqa: S101 - there are no other handlers
    return answer


def _opener(endpoint: str) -> OpenerDirector:
    """Return what goes through proxies, and follows nothing: a token goes to its hub alone."""
    opener = OpenerDirector()
    here = urlsplit(endpoint).hostname in _LOOPBACK_HOSTS
    handlers = (ProxyHandler({} if here else None), HTTPHandler(), HTTPSHandler(), UnknownHandler())
    for handler in handlers:
        opener.add_handler(handler)
    return opener


def read_response(answer: HTTPResponse, *, endpoint: str) -> Any:
    """Return the body of a good answer; raise what a bad one says."""
    try:
        body = answer.read()
    except (OSError, HTTPException) as error:
        raise NotReachable(endpoint, reason_of(error)) from None
    if answer.status >= _FIRST_ERROR:
        raise read_refusal(answer, body, endpoint=endpoint)
    try:
        return json.loads(body) if body else None
    except ValueError:
        kind = answer.headers.get_content_type()
        raise NotReachable(endpoint, f"what answers sent {kind}, not JSON") from None


def read_refusal(answer: HTTPResponse, body: bytes, *, endpoint: str) -> Refused:
    said = _error_fields(body)
    sentence = said.get("error_description") or said.get("error") or said.get("message")
    if isinstance(sentence, list):
        sentence = " ".join(map(str, sentence))
    if not sentence:
        sentence = answer.headers.get("X-Error-Message") or _default_sentence(answer, endpoint)
    is_oauth = "error_description" in said
    retry_after = answer.headers.get("Retry-After", "")
    return Refused(
        answer.status,
        str(sentence),
        code=str(said["error"]) if is_oauth else answer.headers.get("X-Error-Code"),
        request_id=answer.headers.get("X-Request-Id"),
        retry_after=int(retry_after) if retry_after.isascii() and retry_after.isdigit() else None,
    )


def _error_fields(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _default_sentence(answer: HTTPResponse, endpoint: str) -> str:
    target = answer.headers.get("Location")
    if answer.status < _FIRST_CLIENT_ERROR and target:
        return f"{endpoint} leads on to {target}: name that address instead."
    return f"The hub at {endpoint} answered {answer.status} {answer.reason}."


def reason_of(error: BaseException) -> str:
    """Say in a few words why nothing came."""
    if isinstance(error, URLError) and isinstance(error.reason, BaseException):
        error = error.reason
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, socket.gaierror):
        return "its name is not known"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "the connection broke"
