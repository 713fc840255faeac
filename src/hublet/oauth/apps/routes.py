"""HTTP for apps, their secrets and logos, as those manage them who registered them, and for apps
of organizations.
"""

from datetime import timedelta
from typing import Any

from fastapi import Request
from pydantic import MISSING
from starlette.responses import Response

from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.conditional_requests import etag_of, has_version
from hublet.core.schema import Done
from hublet.oauth.apps import administration, client_secrets, logos, service
from hublet.oauth.apps.logos import MAX_LOGO_BYTES
from hublet.oauth.apps.schemas import (
    App,
    CreateApp,
    CreatedSecret,
    CreateSecret,
    OAuthSettings,
    Secret,
    UpdateApp,
    UpdateOAuthSettings,
)
from hublet.oauth.errors import LogoTooLarge
from hublet.tokens.auth import AccountOwner, actor_of
from hublet.tokens.records import Caller

router = Router(prefix="/api/settings/oauth-apps", tags=["oauth"])


@router.get("")
async def list_oauth_apps(conn: ReadConn, caller: AccountOwner) -> list[App]:
    """List the apps that the caller manages, oldest first.

    They are the caller's own, and those that are bound to an organization whose administrator
    the caller is.
    """
    return [App.of(found) for found in await service.list_of(conn, user_id=caller.user_id)]


@router.post(
    "",
    responses={
        404: {"description": "There is no such organization."},
        409: {"description": "There are as many apps as there may be."},
    },
)
async def create_oauth_app(
    request: Request, conn: Conn, caller: AccountOwner, body: CreateApp
) -> App:
    """Register an app; it is public until it gets a secret.

    Redirect URIs are taken as they are; only on `http://localhost`, `http://127.0.0.1` and
    `http://[::1]` any port is accepted later.
    """
    if body.organization is not MISSING:
        caller.check_reaches_name(body.organization)
    return App.of(await service.create(conn, actor_of(request, caller), body))


@router.get("/{client_id}")
async def get_oauth_app(conn: ReadConn, caller: AccountOwner, client_id: str) -> App:
    """Show an app; values of secrets are never shown again."""
    return App.of(await service.get(conn, client_id, user_id=caller.user_id))


@router.patch("/{client_id}")
async def update_oauth_app(
    request: Request, conn: Conn, caller: AccountOwner, client_id: str, body: UpdateApp
) -> App:
    """Change an app; a field that is left out keeps its value.

    When its name or the hosts of its redirect URIs change, people are asked for consent again.
    """
    await _check_reached(conn, caller, client_id)
    return App.of(await service.update(conn, actor_of(request, caller), client_id, body))


@router.delete("/{client_id}")
async def delete_oauth_app(
    request: Request, conn: Conn, caller: AccountOwner, client_id: str
) -> Done:
    """Delete an app; all access that people gave it ends at once."""
    await _check_reached(conn, caller, client_id)
    await service.delete(conn, actor_of(request, caller), client_id)
    return Done()


async def _check_reached(conn: Reader, caller: Caller, client_id: str) -> None:
    """Refuse a token that does not reach the organization of an app; few tokens cost the look."""
    if not caller.blocked:
        return
    managed = await service.get(conn, client_id, user_id=caller.user_id)
    if managed.organization is not None:
        caller.check_reaches_name(managed.organization)


secrets_router = Router(prefix="/api/settings/oauth-apps/{client_id}/secrets", tags=["oauth"])

_DEFAULT_SECRET = CreateSecret()


@secrets_router.post("", responses={409: {"description": "Too many secrets still work."}})
async def create_oauth_secret(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    client_id: str,
    body: CreateSecret = _DEFAULT_SECRET,
) -> CreatedSecret:
    """Give an app a new secret; the answer is the only one that shows its value.

    Secrets that it has work on for `overlapSeconds`, a day unless said otherwise. From now on
    the app must show a secret wherever it asks for tokens.
    """
    await _check_reached(conn, caller, client_id)
    overlap = timedelta(seconds=body.overlapSeconds)
    actor = actor_of(request, caller)
    secret, value = await client_secrets.create(conn, actor, client_id, overlap=overlap)
    return CreatedSecret(secret=Secret.of(secret), value=value)


@secrets_router.delete("")
async def delete_oauth_secrets(
    request: Request, conn: Conn, caller: AccountOwner, client_id: str
) -> Done:
    """Delete all secrets of an app at once; it then works as a public one."""
    await _check_reached(conn, caller, client_id)
    await client_secrets.delete_all(conn, actor_of(request, caller), client_id)
    return Done()


@secrets_router.delete("/{secret_id}")
async def delete_oauth_secret(
    request: Request, conn: Conn, caller: AccountOwner, client_id: str, secret_id: str
) -> Done:
    """Delete one secret of an app at once; without its last one it works as a public one."""
    await _check_reached(conn, caller, client_id)
    await client_secrets.delete(conn, actor_of(request, caller), client_id, secret_id)
    return Done()


logos_router = Router(tags=["oauth"])

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_LOGO_CONTENT = dict.fromkeys(("image/png", "image/jpeg", "image/gif", "image/webp"), _BINARY)
_VERSION_HEADERS = {
    "ETag": {"description": "The version.", "required": True, "schema": {"type": "string"}},
    "Cache-Control": {"required": True, "schema": {"type": "string"}},
}
_LOGO_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": _LOGO_CONTENT, "headers": _VERSION_HEADERS},
    304: {"description": "The version in `If-None-Match` is current.", "headers": _VERSION_HEADERS},
}
_LOGO_BODY: dict[str, Any] = {"requestBody": {"required": True, "content": _LOGO_CONTENT}}


@logos_router.get("/oauth/logos/{app_id}", response_class=Response, responses=_LOGO_RESPONSES)
async def get_oauth_logo(request: Request, conn: ReadConn, app_id: str) -> Response:
    """Get the logo of an app; no token is needed."""
    logo = await logos.get_logo(conn, app_id)
    headers = {"ETag": etag_of(logo.content), "Cache-Control": "public, max-age=300"}
    if has_version(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(logo.content, media_type=logo.media_type, headers=headers)


@logos_router.put("/api/settings/oauth-apps/{client_id}/logo", openapi_extra=_LOGO_BODY)
async def set_oauth_logo(request: Request, conn: Conn, caller: AccountOwner, client_id: str) -> App:
    """Upload the logo of an app: a PNG, JPEG, GIF or WebP image of at most 256 KiB as the body."""
    # The body comes first: the transaction must not wait for a slow upload.
    content = await _read_logo(request)
    return App.of(await logos.set_logo(conn, actor_of(request, caller), client_id, content))


@logos_router.delete("/api/settings/oauth-apps/{client_id}/logo")
async def remove_oauth_logo(
    request: Request, conn: Conn, caller: AccountOwner, client_id: str
) -> App:
    """Take the logo of an app away."""
    return App.of(await logos.remove_logo(conn, actor_of(request, caller), client_id))


async def _read_logo(request: Request) -> bytes:
    """Read the picture, and stop where it becomes too large."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_LOGO_BYTES:
            raise LogoTooLarge(MAX_LOGO_BYTES)
    return bytes(body)


organizations_router = Router(prefix="/api/organizations/{name}", tags=["oauth"])


@organizations_router.get("/oauth-apps")
async def list_organization_oauth_apps(
    conn: ReadConn, caller: AccountOwner, name: str
) -> list[App]:
    """List the apps that are bound to an organization, oldest first; for its administrators."""
    return [
        App.of(each)
        for each in await administration.list_organization_apps(conn, name, user_id=caller.user_id)
    ]


@organizations_router.get("/oauth-settings")
async def get_organization_oauth_settings(
    conn: ReadConn, caller: AccountOwner, name: str
) -> OAuthSettings:
    """Show how long tokens from a token exchange live; for administrators."""
    return await administration.get_settings(conn, name, user_id=caller.user_id)


@organizations_router.patch("/oauth-settings")
async def update_organization_oauth_settings(
    request: Request, conn: Conn, caller: AccountOwner, name: str, body: UpdateOAuthSettings
) -> OAuthSettings:
    """Change how long tokens from a token exchange live: 60 seconds to 30 days, 8 hours at first."""
    return await administration.update_settings(conn, actor_of(request, caller), name, body)
