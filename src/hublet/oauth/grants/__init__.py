"""Grants of the token endpoint, one module each; the table names them all."""

from collections.abc import Awaitable, Callable

from hublet.oauth.errors import invalid_request
from hublet.oauth.grants import (
    authorization_code,
    device_code,
    refresh_token,
    token_exchange,
    trusted_publisher,
)
from hublet.oauth.grants.context import GrantContext, GrantResult, TokenRequest

Grant = Callable[[GrantContext, TokenRequest], Awaitable[GrantResult]]


async def _exchange(desk: GrantContext, request: TokenRequest) -> GrantResult:
    """Two kinds of subjects share one grant type (RFC 8693)."""
    by_subject: dict[str, Grant] = dict.fromkeys(
        token_exchange.SUBJECT_TYPES, token_exchange.redeem
    )
    by_subject[trusted_publisher.SUBJECT_TYPE] = trusted_publisher.redeem
    grant = by_subject.get(request.get("subject_token_type"))
    if grant is None:
        raise invalid_request(f"subject_token_type must be {token_exchange.SUBJECT_TYPES[0]}.")
    return await grant(desk, request)


GRANTS: dict[str, Grant] = {
    "authorization_code": authorization_code.redeem,
    "refresh_token": refresh_token.redeem,
    "urn:ietf:params:oauth:grant-type:device_code": device_code.redeem,
    "urn:ietf:params:oauth:grant-type:token-exchange": _exchange,
}
