"""Grants of the token endpoint, one module each; the table names them all."""

from collections.abc import Awaitable, Callable

from hublet.oauth.grants import authorization_code, device_code, refresh_token, token_exchange
from hublet.oauth.grants.context import GrantContext, GrantResult, TokenRequest

Grant = Callable[[GrantContext, TokenRequest], Awaitable[GrantResult]]

GRANTS: dict[str, Grant] = {
    "authorization_code": authorization_code.redeem,
    "refresh_token": refresh_token.redeem,
    "urn:ietf:params:oauth:grant-type:device_code": device_code.redeem,
    "urn:ietf:params:oauth:grant-type:token-exchange": token_exchange.redeem,
}
