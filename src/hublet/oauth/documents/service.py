"""Apps that describe themselves at the address that is their client id (interface 5.2)."""

from dataclasses import replace

from hublet.core.clock import now
from hublet.core.database import Connection, Database
from hublet.core.ids import new_object_id
from hublet.core.logs import get_logger
from hublet.oauth.apps import store as apps
from hublet.oauth.apps.errors import UnknownApp
from hublet.oauth.apps.logos import store as logos
from hublet.oauth.apps.logos.records import Logo
from hublet.oauth.documents import store
from hublet.oauth.documents.addresses import objection_to
from hublet.oauth.documents.contents import Document, read_document
from hublet.oauth.documents.errors import DocumentRefused
from hublet.oauth.documents.fetching import fetch_document, fetch_logo
from hublet.oauth.documents.flights import flights_of
from hublet.oauth.documents.records import Fetched, Kept
from hublet.oauth.records import App, AppKind
from hublet.oauth.redirect_uris import host_of

TOKEN_SECONDS = 8 * 3600
MAX_UNUSED = 10_000
SURPLUS_AT_A_TIME = 10

log = get_logger("oauth")


async def app_of(database: Database, client_id: str, *, may_be_stale: bool) -> App:
    """Return the app of a document, fetched anew when the copy of it has had its time."""
    issuer = database.hub.settings.base_url
    if not client_id.startswith(("https://", "http://")):
        raise UnknownApp
    if objection := objection_to(client_id, issuer=issuer):
        raise UnknownApp(objection)
    async with database.read() as conn:
        kept = await store.find(conn, client_id)
    if kept is not None and kept.serves(now(), may_be_stale=may_be_stale):
        return kept.app
    try:
        return await flights_of(database).share(client_id, lambda: _fetch(database, client_id))
    except DocumentRefused as refused:
        log.info("client document refused", client_id=client_id, reason=refused.reason)
        raise UnknownApp(refused.reason) from None


async def _fetch(database: Database, client_id: str) -> App:
    settings = database.hub.settings
    fetched = await fetch_document(settings, client_id)
    document = read_document(client_id, fetched.body, issuer=settings.base_url)
    async with database.read() as conn:
        kept = await store.find(conn, client_id)
    logo = None
    if document.logo_uri is not None and _needs_logo(kept, document):
        logo = await fetch_logo(settings, document.logo_uri)
    async with database.transaction() as conn:
        await _keep(conn, client_id, document, fetched, logo)
        app = await apps.find(conn, client_id)
    if app is None:
        raise UnknownApp
    return app


def _needs_logo(kept: Kept | None, document: Document) -> bool:
    return kept is None or kept.logo_uri != document.logo_uri or kept.app.logo_uri is None


async def _keep(
    conn: Connection, client_id: str, document: Document, fetched: Fetched, logo: Logo | None
) -> None:
    await conn.lock(f"app {client_id}")
    kept = await store.find(conn, client_id)
    if kept is None:
        app = _new_app(client_id, document, fetched)
        await apps.add(conn, app)
        # Anybody can make up addresses; what nobody uses must not fill the database.
        surplus = await store.list_surplus(conn, kept=MAX_UNUSED, limit=SURPLUS_AT_A_TIME)
        await apps.remove(conn, surplus)
    else:
        app = _changed(kept, document)
        await apps.update(conn, app)
    await store.put(conn, app, fetched, logo_uri=document.logo_uri)
    if logo is not None:
        await logos.put(conn, app.id, logo)
    elif kept is None or kept.logo_uri != document.logo_uri:
        await logos.remove(conn, app.id)


def _new_app(client_id: str, document: Document, fetched: Fetched) -> App:
    return App(
        id=new_object_id(),
        client_id=client_id,
        kind=AppKind.document,
        name=document.name,
        client_uri=document.client_uri,
        redirect_uris=document.redirect_uris,
        scopes=document.scopes,
        token_seconds=TOKEN_SECONDS,
        created_at=fetched.fetched_at,
        updated_at=fetched.fetched_at,
    )


def _changed(kept: Kept, document: Document) -> App:
    """Return the app as the document is now; people are asked again when they would see it."""
    before = kept.app
    app = replace(
        before,
        name=document.name,
        client_uri=document.client_uri,
        redirect_uris=document.redirect_uris,
        scopes=document.scopes,
    )
    seen = (app.name, _hosts(app), document.logo_uri)
    if seen != (before.name, _hosts(before), kept.logo_uri):
        app = replace(app, revision=app.revision + 1)
    return app


def _hosts(app: App) -> set[str]:
    return set(map(host_of, app.redirect_uris))
