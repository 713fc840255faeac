"""Logos of apps: set and removed by managers; people are asked for consent again when one changes."""

from hublet.accounts.records import Actor
from hublet.core.database import Connection, Reader
from hublet.oauth.apps import service as apps
from hublet.oauth.apps import store
from hublet.oauth.apps.records import Logo, ManagedApp, validate_logo
from hublet.oauth.errors import LogoNotFound


async def get_logo(conn: Reader, app_id: str) -> Logo:
    logo = await store.find_logo(conn, app_id)
    if logo is None:
        raise LogoNotFound(app_id)
    return logo


async def set_logo(conn: Connection, actor: Actor, client_id: str, content: bytes) -> ManagedApp:
    """Show this picture with an app from now on."""
    logo = validate_logo(content)
    app = (await apps.lock_app(conn, actor, client_id)).app
    if await store.find_logo(conn, app.id) != logo:
        await store.put_logo(conn, app.id, logo)
        await store.raise_revision(conn, app.id)
        await apps.write_audit(conn, actor, app, "oauth-app.update", details={"fields": ["logo"]})
    return await apps.get(conn, client_id, user_id=actor.id or "")


async def remove_logo(conn: Connection, actor: Actor, client_id: str) -> ManagedApp:
    app = (await apps.lock_app(conn, actor, client_id)).app
    if await store.remove_logo(conn, app.id):
        await store.raise_revision(conn, app.id)
        await apps.write_audit(conn, actor, app, "oauth-app.update", details={"fields": ["logo"]})
    return await apps.get(conn, client_id, user_id=actor.id or "")
