"""HTTP for token revocation."""

from fastapi import Request

from hublet.core.http import HotRoute, Router
from hublet.core.http.rendering import tell_errors_as
from hublet.core.schema import Done
from hublet.oauth.errors import as_oauth
from hublet.oauth.revocation import service
from hublet.oauth.token.auth import AS_APP, desk_of, read
from hublet.oauth.token.schemas import REFUSALS, form_of

router = Router(tags=["oauth"])


async def revoke_oauth_token(request: Request) -> bytes:
    """Revoke a token that the app got; with a refresh token, everything issued with it.

    The answer is the same for a token that is unknown, expired or somebody else's.
    """
    await service.revoke(desk_of(request), await read(request))
    return b"{}"


router.add_api_route(
    "/oauth/revoke",
    revoke_oauth_token,
    methods=["POST"],
    response_model=Done,
    responses=REFUSALS,
    openapi_extra=form_of("token", "token_type_hint", required=["token"]),
    dependencies=AS_APP,
    route_class_override=HotRoute,
)

tell_errors_as("/oauth/revoke", as_oauth)
