"""HTTP routes for avatars and social handles of users and organizations."""

from typing import Any

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from hublet.accounts import avatar_uploads, socials
from hublet.accounts.avatars import MAX_AVATAR_BYTES, avatar_url
from hublet.accounts.errors import ImageTooLarge, OrganizationNotFound
from hublet.accounts.organizations import service as organizations
from hublet.accounts.schemas import (
    AvatarUrl,
    OrganizationHandles,
    OrganizationSocials,
    UserHandles,
    UserSocials,
)
from hublet.accounts.users import service as users
from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.conditional_requests import etag_of, has_version
from hublet.tokens.auth import AccountOwner, MaybeCaller, actor_of

router = Router()

_UPLOADS = ("image/png", "image/jpeg", "image/gif", "image/webp")
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_VERSION_HEADERS = {
    "ETag": {"description": "The version.", "required": True, "schema": {"type": "string"}},
    "Cache-Control": {"required": True, "schema": {"type": "string"}},
}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": dict.fromkeys((*_UPLOADS, avatar_uploads.DEFAULT_MEDIA_TYPE), _BINARY),
        "headers": _VERSION_HEADERS,
    },
    304: {"description": "The version in `If-None-Match` is current.", "headers": _VERSION_HEADERS},
}
_IMAGE_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": dict.fromkeys(_UPLOADS, _BINARY)}
}
# SVG can carry scripts and links; opened on its own it may neither run nor load anything.
_CONTENT_SECURITY_POLICY = "default-src 'none'; sandbox"


@router.get("/avatars/{account_id}", tags=["users"], response_class=Response, responses=_RESPONSES)
async def get_avatar(request: Request, conn: ReadConn, account_id: str) -> Response:
    """Get the picture of a user or an organization; no token is needed."""
    picture = await avatar_uploads.get(conn, account_id)
    headers = {
        "ETag": etag_of(picture.content),
        "Cache-Control": "public, max-age=300",
        "Content-Security-Policy": _CONTENT_SECURITY_POLICY,
    }
    if has_version(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(picture.content, media_type=picture.media_type, headers=headers)


@router.get(
    "/api/avatars/{name}",
    tags=["users"],
    response_class=Response,
    status_code=302,
    responses={302: {"description": "Where the picture is."}},
)
async def find_avatar(conn: ReadConn, caller: MaybeCaller, name: str) -> Response:
    """Go to the picture of the user or the organization of this name; no token is needed."""
    to_administrator = caller is not None and caller.is_admin
    try:
        account_id = (await organizations.get(conn, name)).id
    except OrganizationNotFound:
        user = await users.get_visible_user(conn, name, to_administrator=to_administrator)
        account_id = user.id
    return RedirectResponse(avatar_url(conn.hub.settings.base_url, account_id), status_code=302)


@router.put("/api/settings/avatar", tags=["users"], openapi_extra=_IMAGE_BODY)
async def set_own_avatar(request: Request, conn: Conn, caller: AccountOwner) -> AvatarUrl:
    """Upload the caller's picture: a PNG, JPEG, GIF or WebP image as the body."""
    await avatar_uploads.set_of_user(conn, caller.user_id, await _read_image(request))
    return _avatar_url(conn, caller.user_id)


@router.delete("/api/settings/avatar", tags=["users"])
async def remove_own_avatar(conn: Conn, caller: AccountOwner) -> AvatarUrl:
    """Go back to the drawn picture."""
    await avatar_uploads.remove_of_user(conn, caller.user_id)
    return _avatar_url(conn, caller.user_id)


@router.get("/api/organizations/{name}/avatar", tags=["orgs"])
async def get_organization_avatar(conn: ReadConn, name: str) -> AvatarUrl:
    """Tell where an organization's picture is."""
    return _avatar_url(conn, (await organizations.get(conn, name)).id)


@router.put("/api/organizations/{name}/avatar", tags=["orgs"], openapi_extra=_IMAGE_BODY)
async def set_organization_avatar(
    request: Request, conn: Conn, caller: AccountOwner, name: str
) -> AvatarUrl:
    """Upload an organization's picture: a PNG, JPEG, GIF or WebP image as the body."""
    # The body comes first: the transaction must not wait for a slow upload.
    content = await _read_image(request)
    organization = await organizations.get_administered(conn, name, user_id=caller.user_id)
    await avatar_uploads.set_of_organization(conn, actor_of(request, caller), organization, content)
    return _avatar_url(conn, organization.id)


@router.delete("/api/organizations/{name}/avatar", tags=["orgs"])
async def remove_organization_avatar(
    request: Request, conn: Conn, caller: AccountOwner, name: str
) -> AvatarUrl:
    """Go back to the organization's drawn picture."""
    organization = await organizations.get_administered(conn, name, user_id=caller.user_id)
    await avatar_uploads.remove_of_organization(conn, actor_of(request, caller), organization)
    return _avatar_url(conn, organization.id)


@router.get("/api/users/{name}/socials", tags=["users"])
async def get_user_socials(conn: ReadConn, caller: MaybeCaller, name: str) -> UserSocials:
    """Show the handles that a user has in other networks; no token is needed."""
    to_administrator = caller is not None and caller.is_admin
    user = await users.get_visible_user(conn, name, to_administrator=to_administrator)
    return UserSocials.of(user, await socials.get(conn, user.id))


@router.patch("/api/settings/socials", tags=["users"])
async def update_own_socials(conn: Conn, caller: AccountOwner, body: UserHandles) -> UserSocials:
    """Change the caller's handles in other networks; what is left out stays, "" removes one."""
    user = await users.get_user_by_id(conn, caller.user_id)
    await socials.set_of_user(conn, user.id, body.given())
    return UserSocials.of(user, await socials.get(conn, user.id))


@router.get("/api/organizations/{name}/socials", tags=["orgs"])
async def get_organization_socials(conn: ReadConn, name: str) -> OrganizationSocials:
    """Show the handles that an organization has in other networks; no token is needed."""
    organization = await organizations.get(conn, name)
    return OrganizationSocials.of(organization, await socials.get(conn, organization.id))


@router.patch("/api/organizations/{name}/socials", tags=["orgs"])
async def update_organization_socials(
    request: Request, conn: Conn, caller: AccountOwner, name: str, body: OrganizationHandles
) -> OrganizationSocials:
    """Change an organization's handles in other networks; what is left out stays, "" removes one."""
    organization = await organizations.get_administered(conn, name, user_id=caller.user_id)
    actor = actor_of(request, caller)
    await socials.set_of_organization(conn, actor, organization, body.given())
    return OrganizationSocials.of(organization, await socials.get(conn, organization.id))


def _avatar_url(conn: Reader, account_id: str) -> AvatarUrl:
    return AvatarUrl(avatarUrl=avatar_url(conn.hub.settings.base_url, account_id))


async def _read_image(request: Request) -> bytes:
    """Read the image from the body, and refuse it as soon as it is too large."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_AVATAR_BYTES:
            raise ImageTooLarge(MAX_AVATAR_BYTES)
    return bytes(body)
