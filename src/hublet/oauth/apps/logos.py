"""Logos of apps: checked, set and removed by managers; a change asks people for consent again."""

from hublet.accounts.avatars import sniff_image
from hublet.accounts.records import Actor
from hublet.core.database import Connection, Reader
from hublet.oauth.apps import service as apps
from hublet.oauth.apps import store
from hublet.oauth.apps.records import Logo, ManagedApp
from hublet.oauth.errors import InvalidLogo, LogoNotFound, LogoTooLarge

MAX_LOGO_BYTES = 262_144


def validate_logo(content: bytes) -> Logo:
    """Return the logo that these bytes are; the media type that the sender states is ignored."""
    if len(content) > MAX_LOGO_BYTES:
        raise LogoTooLarge(MAX_LOGO_BYTES)
    media_type = sniff_image(content)
    if media_type is None:
        raise InvalidLogo
    return Logo(media_type=media_type, content=content)


async def get_logo(conn: Reader, app_id: str) -> Logo:
    logo = await store.find_logo(conn, app_id)
    if logo is None:
        raise LogoNotFound(app_id)
    return logo


async def set_logo(conn: Connection, actor: Actor, client_id: str, content: bytes) -> ManagedApp:
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
