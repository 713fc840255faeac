"""HTTP for apps that register by themselves."""

from typing import Any

from fastapi import Request

from hublet.core.http import Conn, Router
from hublet.core.http.exchange import exchange_of
from hublet.core.http.rendering import tell_errors_as
from hublet.core.limits import Limiter, Policy, refuse_when_spent
from hublet.oauth.errors import as_oauth
from hublet.oauth.registration import service
from hublet.oauth.registration.schemas import METADATA, RegisteredClient
from hublet.oauth.token.schemas import REFUSALS

PATH = "/oauth/register"
REGISTRATIONS = Policy(name="register", quota=20, window_seconds=3600)
_REFUSALS: dict[int | str, dict[str, Any]] = {
    **{status: REFUSALS[status] for status in (400, 413, 429, 503)},
    403: REFUSALS[400] | {"description": "Apps cannot register by themselves at this hub."},
}

router = Router(tags=["oauth"])
tell_errors_as(PATH, as_oauth)


@router.post(PATH, status_code=201, openapi_extra=METADATA, responses=_REFUSALS)
async def register_oauth_client(request: Request, conn: Conn) -> RegisteredClient:
    """Register an app that describes itself (RFC 7591); no token is needed.

    An app that nobody uses is removed after 30 days.
    """
    limiter: Limiter = request.app.state.limiter
    refuse_when_spent(limiter.count(REGISTRATIONS, exchange_of(request).address))
    return RegisteredClient.of(await service.register(conn, await request.body()))
