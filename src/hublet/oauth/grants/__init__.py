"""The grants of the token endpoint, one module each; the table names them all."""

from collections.abc import Awaitable, Callable

from hublet.oauth.errors import invalid_request
from hublet.oauth.grants import code, device, exchange, publisher, refresh
from hublet.oauth.grants.desk import Desk
from hublet.oauth.grants.records import Answer, TokenRequest

Grant = Callable[[Desk, TokenRequest], Awaitable[Answer]]


async def _exchange(desk: Desk, request: TokenRequest) -> Answer:
    """Two kinds of subjects share one grant type (RFC 8693)."""
    by_subject: dict[str, Grant] = dict.fromkeys(exchange.SUBJECT_TYPES, exchange.redeem)
    by_subject[publisher.SUBJECT_TYPE] = publisher.redeem
    grant = by_subject.get(request.get("subject_token_type"))
    if grant is None:
        raise invalid_request(f"subject_token_type must be {exchange.SUBJECT_TYPES[0]}.")
    return await grant(desk, request)


GRANTS: dict[str, Grant] = {
    "authorization_code": code.redeem,
    "refresh_token": refresh.redeem,
    "urn:ietf:params:oauth:grant-type:device_code": device.redeem,
    "urn:ietf:params:oauth:grant-type:token-exchange": _exchange,
}
