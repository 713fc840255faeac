"""Parser of requests to the OAuth endpoints: parameters from a form or from JSON, and the credentials
of the app.
"""

import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request, Security
from fastapi.security import HTTPBasic
from starlette.requests import ClientDisconnect

from hublet.core.errors import TooLarge
from hublet.core.http.exchange import exchange_of
from hublet.oauth.clients import read_credentials
from hublet.oauth.errors import OAuthError, UnsupportedEncoding, invalid_request
from hublet.oauth.grants.context import GrantContext, TokenRequest

LARGEST_BODY = 65_536
LONGEST_VALUE = 8192
MOST_PARAMETERS = 100

_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLAIN_NAME = re.compile(r"[a-z_]{1,40}")
# RFC 8693 and RFC 8707 let these stand several times; no address contains a space.
_MAY_REPEAT = frozenset({"resource", "audience"})
# Addresses end up in logs and histories.
_NEVER_IN_QUERY = ("client_secret", "code", "refresh_token", "subject_token", "token")
_LONGEST_AGENT = 200

# For the description only: `hublet.oauth.clients` reads what is sent.
_client_scheme = HTTPBasic(
    auto_error=False,
    scheme_name="app",
    description="The client id and the secret of an app; one without a secret sends `client_id`.",
)
CLIENT_AUTHENTICATION: list[Any] = [Security(_client_scheme)]


async def read_request(request: Request) -> TokenRequest:
    headers = request.headers
    if headers.get("content-encoding", "identity") != "identity":
        raise UnsupportedEncoding
    if request.scope["query_string"]:
        _check_query(request)
    parameters = parse_parameters(headers.get("content-type"), await _body(request))
    agent = headers.get("user-agent")
    return TokenRequest(
        parameters=parameters,
        credentials=read_credentials(headers.getlist("authorization"), parameters),
        address=exchange_of(request).address,
        agent=None if agent is None else agent[:_LONGEST_AGENT],
    )


def _check_query(request: Request) -> None:
    for name in _NEVER_IN_QUERY:
        if name in request.query_params:
            raise invalid_request(f"{name} must be sent in the body, never in the address.")


async def _body(request: Request) -> bytes:
    try:
        return await request.body()
    except ClientDisconnect:
        raise invalid_request("The body ended too early.") from None


def grant_context_of(request: Request) -> GrantContext:
    context: GrantContext = request.app.state.grant_context
    return context


def parse_parameters(content_type: str | None, body: bytes) -> dict[str, str]:
    """Return the parameters; one without a value counts as left out (RFC 6749, 3.2)."""
    if len(body) > LARGEST_BODY:
        raise TooLarge(f"The body must have at most {LARGEST_BODY} bytes.")
    parameters: dict[str, str] = {}
    for name, value in _pairs(content_type, body):
        _check_parameter(name, value)
        if name in parameters:
            if name not in _MAY_REPEAT:
                raise invalid_request(f"{_safe_name(name)} must not be repeated.")
            value = f"{parameters[name]} {value}"  # noqa: PLW2901 - what stands there already
        parameters[name] = value
    return {name: value for name, value in parameters.items() if value}


def _pairs(content_type: str | None, body: bytes) -> Iterable[tuple[str, str]]:
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type == _FORM:
        return _parse_form(body)
    if media_type == _JSON:
        return _parse_json(body)
    raise invalid_request(f"Content-Type must be {_FORM} or {_JSON}.")


def _parse_form(body: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            body.decode(),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MOST_PARAMETERS,
        )
    except UnicodeDecodeError:
        raise invalid_request("The body must be UTF-8.") from None
    except ValueError:
        raise _too_many() from None


def _parse_json(body: bytes) -> list[tuple[str, str]]:
    try:
        pairs = json.loads(body, object_pairs_hook=list)
    except (ValueError, RecursionError):
        raise invalid_request("The body must be valid JSON.") from None
    # An object has become a list of pairs; an array holds no pairs, or none with names.
    if not body.lstrip().startswith(b"{") or not isinstance(pairs, list):
        raise invalid_request("The body must be a JSON object.")
    if len(pairs) > MOST_PARAMETERS:
        raise _too_many()
    if not all(isinstance(value, str) for _, value in pairs):
        raise invalid_request("Every parameter must be a string.")
    return pairs


def _check_parameter(name: str, value: str) -> None:
    if len(value) > LONGEST_VALUE:
        raise invalid_request(f"{_safe_name(name)} must have at most {LONGEST_VALUE} characters.")
    if _CONTROL.search(value) or not _is_encodable(value):
        raise invalid_request(f"{_safe_name(name)} must be printable text.")


def _is_encodable(value: str) -> bool:
    """Tell whether UTF-8 can hold the value: JSON can hold half a surrogate pair."""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def _safe_name(name: str) -> str:
    """Return the name to quote in an error; it may be anything, so only a plain one is repeated."""
    return name if _PLAIN_NAME.fullmatch(name) else "A parameter"


def _too_many() -> OAuthError:
    return invalid_request(f"At most {MOST_PARAMETERS} parameters can be sent.")
