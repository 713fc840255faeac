"""HTTP for token introspection."""

import msgspec
from fastapi import Request

from hublet.core.http import HotRoute, Router
from hublet.core.http.rendering import tell_errors_as
from hublet.oauth.errors import as_oauth
from hublet.oauth.introspection import service
from hublet.oauth.introspection.schemas import Introspection
from hublet.oauth.token.auth import AS_APP, desk_of, read
from hublet.oauth.token.schemas import REFUSALS, form_of

router = Router(tags=["oauth"])


async def introspect_oauth_token(request: Request) -> bytes:
    """Tell an app with a secret whether a token of its own works, and what it may do."""
    database = desk_of(request).database
    return msgspec.json.encode(await service.introspect(database, await read(request)))


router.add_api_route(
    "/oauth/introspect",
    introspect_oauth_token,
    methods=["POST"],
    response_model=Introspection,
    responses=REFUSALS,
    openapi_extra=form_of("token", "token_type_hint", required=["token"]),
    dependencies=AS_APP,
    route_class_override=HotRoute,
)

tell_errors_as("/oauth/introspect", as_oauth)
