"""Reads a request to an OAuth endpoint: its parameters, and who says to send it."""

from typing import Any

from fastapi import Request, Security
from fastapi.security import HTTPBasic
from starlette.requests import ClientDisconnect

from hublet.core.http.exchange import exchange_of
from hublet.oauth.clients import presented_by
from hublet.oauth.errors import UnsupportedEncoding, invalid_request
from hublet.oauth.grants.desk import Desk
from hublet.oauth.grants.records import TokenRequest
from hublet.oauth.token.parameters import parse

# For the description only: `hublet.oauth.clients` reads what is sent.
_app = HTTPBasic(
    auto_error=False,
    scheme_name="app",
    description="The client id and the secret of an app; one without a secret sends `client_id`.",
)
AS_APP: list[Any] = [Security(_app)]

# Addresses end up in logs and histories.
_NEVER_IN_AN_ADDRESS = ("client_secret", "code", "refresh_token", "subject_token", "token")
_LONGEST_AGENT = 200


async def read(request: Request) -> TokenRequest:
    headers = request.headers
    if headers.get("content-encoding", "identity") != "identity":
        raise UnsupportedEncoding
    if request.scope["query_string"]:
        _check_query(request)
    parameters = parse(headers.get("content-type"), await _body(request))
    agent = headers.get("user-agent")
    return TokenRequest(
        parameters=parameters,
        presented=presented_by(headers.getlist("authorization"), parameters),
        address=exchange_of(request).address,
        agent=None if agent is None else agent[:_LONGEST_AGENT],
    )


def _check_query(request: Request) -> None:
    for name in _NEVER_IN_AN_ADDRESS:
        if name in request.query_params:
            raise invalid_request(f"{name} must be sent in the body, never in the address.")


async def _body(request: Request) -> bytes:
    try:
        return await request.body()
    except ClientDisconnect:
        raise invalid_request("The body ended too early.") from None


def desk_of(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk
