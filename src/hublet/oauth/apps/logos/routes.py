"""HTTP for logos of apps."""

from typing import Any

from fastapi import Request
from starlette.responses import Response

from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.versions import etag_of, has_version
from hublet.oauth.apps.logos import service
from hublet.oauth.apps.logos.errors import LogoTooLarge
from hublet.oauth.apps.logos.pictures import MAX_LOGO_BYTES
from hublet.oauth.apps.schemas import App
from hublet.tokens.auth import AccountOwner, actor_of

router = Router(tags=["oauth"])

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_LOGOS = dict.fromkeys(("image/png", "image/jpeg", "image/gif", "image/webp"), _BINARY)
_VERSION_HEADERS = {
    "ETag": {"description": "The version.", "required": True, "schema": {"type": "string"}},
    "Cache-Control": {"required": True, "schema": {"type": "string"}},
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": _LOGOS, "headers": _VERSION_HEADERS},
    304: {"description": "The version in `If-None-Match` is current.", "headers": _VERSION_HEADERS},
}
_TAKES_A_LOGO: dict[str, Any] = {"requestBody": {"required": True, "content": _LOGOS}}


@router.get("/oauth/logos/{app_id}", response_class=Response, responses=_ANSWERS)
async def get_oauth_logo(request: Request, conn: ReadConn, app_id: str) -> Response:
    """Get the logo of an app; no token is needed."""
    logo = await service.get(conn, app_id)
    headers = {"ETag": etag_of(logo.content), "Cache-Control": "public, max-age=300"}
    if has_version(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(logo.content, media_type=logo.media_type, headers=headers)


@router.put("/api/settings/oauth-apps/{client_id}/logo", openapi_extra=_TAKES_A_LOGO)
async def set_oauth_logo(request: Request, conn: Conn, caller: AccountOwner, client_id: str) -> App:
    """Upload the logo of an app: a PNG, JPEG, GIF or WebP image of at most 256 KiB as the body."""
    # The body comes first: the transaction must not wait for a slow upload.
    content = await _body_of(request)
    return App.of(await service.put(conn, actor_of(request, caller), client_id, content))


@router.delete("/api/settings/oauth-apps/{client_id}/logo")
async def remove_oauth_logo(
    request: Request, conn: Conn, caller: AccountOwner, client_id: str
) -> App:
    """Take the logo of an app away."""
    return App.of(await service.remove(conn, actor_of(request, caller), client_id))


async def _body_of(request: Request) -> bytes:
    """Read the picture, and stop where it becomes too large."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_LOGO_BYTES:
            raise LogoTooLarge(MAX_LOGO_BYTES)
    return bytes(body)
