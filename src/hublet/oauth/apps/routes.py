"""HTTP for apps as those manage them who registered them."""

from fastapi import Request

from hublet.core.http import Conn, ReadConn, Router
from hublet.core.schema import Done
from hublet.oauth.apps import service
from hublet.oauth.apps.schemas import App, CreateApp, UpdateApp
from hublet.tokens.auth import AccountOwner, actor_of

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
    return App.of(await service.update(conn, actor_of(request, caller), client_id, body))


@router.delete("/{client_id}")
async def delete_oauth_app(
    request: Request, conn: Conn, caller: AccountOwner, client_id: str
) -> Done:
    """Delete an app; all access that people gave it ends at once."""
    await service.delete(conn, actor_of(request, caller), client_id)
    return Done()
