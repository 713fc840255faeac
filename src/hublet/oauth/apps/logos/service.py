"""Rules of logos: what may be one, and that people are asked again when it changes."""

from hublet.accounts.records import Actor
from hublet.core.database import Connection, Reader
from hublet.oauth.apps import service as apps
from hublet.oauth.apps import store as apps_store
from hublet.oauth.apps.logos import store
from hublet.oauth.apps.logos.errors import LogoNotFound
from hublet.oauth.apps.logos.pictures import checked_logo
from hublet.oauth.apps.logos.records import Logo
from hublet.oauth.apps.records import ManagedApp


async def get(conn: Reader, app_id: str) -> Logo:
    logo = await store.find(conn, app_id)
    if logo is None:
        raise LogoNotFound(app_id)
    return logo


async def put(conn: Connection, actor: Actor, client_id: str, content: bytes) -> ManagedApp:
    """Show this picture with an app from now on."""
    logo = checked_logo(content)
    app = (await apps.hold(conn, actor, client_id)).app
    if await store.find(conn, app.id) != logo:
        await store.put(conn, app.id, logo)
        await apps_store.raise_revision(conn, app.id)
        await apps.record(conn, actor, app, "oauth-app.update", details={"fields": ["logo"]})
    return await apps.get(conn, client_id, user_id=actor.id or "")


async def remove(conn: Connection, actor: Actor, client_id: str) -> ManagedApp:
    app = (await apps.hold(conn, actor, client_id)).app
    if await store.remove(conn, app.id):
        await apps_store.raise_revision(conn, app.id)
        await apps.record(conn, actor, app, "oauth-app.update", details={"fields": ["logo"]})
    return await apps.get(conn, client_id, user_id=actor.id or "")
