"""HTTP for the token endpoint and the start of a device login."""

from typing import Any

import msgspec
from fastapi import Request, Response

from hublet.core.http import HotRoute, Router
from hublet.core.http.rendering import tell_errors_as
from hublet.oauth.errors import as_oauth
from hublet.oauth.token import device, service
from hublet.oauth.token.auth import AS_APP, desk_of, read
from hublet.oauth.token.schemas import (
    REFUSALS,
    TOKEN_FORM,
    DeviceAuthorization,
    Tokens,
    form_of,
)

router = Router(tags=["oauth"])


# RFC 6749, 5.1: nothing on the way keeps a token.
_NOT_KEPT = {"Cache-Control": "no-store", "Pragma": "no-cache"}


async def issue_tokens(request: Request) -> Response:
    """Issue tokens for a code, a refresh token, a device code, or by token exchange.

    Apps with a secret send `Authorization: Basic`, or `client_secret` in the body; others send
    `client_id`, or nothing where a code with PKCE tells who they are.
    """
    return _answer(await service.answer_to(desk_of(request), await read(request)))


async def start_device_login(request: Request) -> Response:
    """Start a login on a device without a browser: a code for the app, a short one for a person."""
    return _answer(await device.start(desk_of(request), await read(request)))


def _answer(body: dict[str, Any]) -> Response:
    return Response(
        msgspec.json.encode(body), media_type="application/json", headers=dict(_NOT_KEPT)
    )


router.add_api_route(
    "/oauth/token",
    issue_tokens,
    methods=["POST"],
    response_model=Tokens,
    responses=REFUSALS,
    openapi_extra=TOKEN_FORM,
    dependencies=AS_APP,
    route_class_override=HotRoute,
)
router.add_api_route(
    "/oauth/device",
    start_device_login,
    methods=["POST"],
    response_model=DeviceAuthorization,
    responses=REFUSALS,
    openapi_extra=form_of("scope", required=[]),
    dependencies=AS_APP,
    route_class_override=HotRoute,
)

for path in ("/oauth/token", "/oauth/device"):
    tell_errors_as(path, as_oauth)
