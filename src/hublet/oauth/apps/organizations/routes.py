"""HTTP for apps that are bound to an organization."""

from fastapi import Request

from hublet.core.http import Conn, ReadConn, Router
from hublet.oauth.apps.organizations import service
from hublet.oauth.apps.organizations.schemas import OAuthSettings, UpdateOAuthSettings
from hublet.oauth.apps.schemas import App
from hublet.tokens.auth import AccountOwner, actor_of

router = Router(prefix="/api/organizations/{name}", tags=["oauth"])


@router.get("/oauth-apps")
async def list_organization_oauth_apps(
    conn: ReadConn, caller: AccountOwner, name: str
) -> list[App]:
    """List the apps that are bound to an organization, oldest first; for its administrators."""
    return [App.of(each) for each in await service.list_apps(conn, name, user_id=caller.user_id)]


@router.get("/oauth-settings")
async def get_organization_oauth_settings(
    conn: ReadConn, caller: AccountOwner, name: str
) -> OAuthSettings:
    """Show how long tokens from a token exchange live; for administrators."""
    return await service.get_settings(conn, name, user_id=caller.user_id)


@router.patch("/oauth-settings")
async def update_organization_oauth_settings(
    request: Request, conn: Conn, caller: AccountOwner, name: str, body: UpdateOAuthSettings
) -> OAuthSettings:
    """Change how long tokens from a token exchange live: 60 seconds to 30 days, 8 hours at first."""
    return await service.update_settings(conn, actor_of(request, caller), name, body)
