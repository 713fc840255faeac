"""Requests and answers of OAuth endpoints on the wire; their names are those of the RFCs."""

from typing import Any, Literal

from pydantic import MISSING

from hublet.core.schema import Schema


class Tokens(Schema):
    """What an app gets (RFC 6749, 5.1)."""

    access_token: str
    token_type: Literal["bearer"]
    # Seconds.
    expires_in: int
    scope: str
    refresh_token: str | MISSING = MISSING
    # With the scope openid only.
    id_token: str | MISSING = MISSING
    # At a token exchange only.
    issued_token_type: str | MISSING = MISSING


class DeviceAuthorization(Schema):
    """What an app shows a person (RFC 8628, 3.2), and polls with."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int


class OAuthRefusal(Schema):
    """The form of errors of OAuth endpoints (RFC 6749, 5.2)."""

    error: str
    error_description: str
    # Seconds between two polls, with slow_down for a device code.
    interval: int | MISSING = MISSING


_SENTENCES = {
    400: "The request is refused; `error` is a code of RFC 6749, RFC 8628 or RFC 8693.",
    401: "The app is unknown, or does not prove who it is.",
    413: "The body is larger than this endpoint takes.",
    415: "The body is compressed.",
    429: "There were too many requests; `error` is `slow_down`.",
    503: "A part of the hub cannot answer now; the same request may succeed later.",
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": OAuthRefusal, "description": sentence}
    for status, sentence in _SENTENCES.items()
}

_TEXT = {"type": "string"}
_CREDENTIALS = {"client_id": _TEXT, "client_secret": _TEXT}


def form_of(*names: str, required: list[str]) -> dict[str, Any]:
    """Describe a request whose parameters come as a form or as JSON."""
    schema = {
        "type": "object",
        "properties": dict.fromkeys(names, _TEXT) | _CREDENTIALS,
        "required": required,
    }
    content = {
        media_type: {"schema": schema}
        for media_type in ("application/x-www-form-urlencoded", "application/json")
    }
    return {"requestBody": {"required": True, "content": content}}


TOKEN_FORM = form_of(
    "grant_type",
    "code",
    "redirect_uri",
    "code_verifier",
    "refresh_token",
    "device_code",
    "subject_token",
    "subject_token_type",
    "requested_token_type",
    "scope",
    "resource",
    "audience",
    required=["grant_type"],
)
