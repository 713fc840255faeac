"""Rules of client ID metadata documents (interface 5.2): an app is fetched from the address that is
its client id, cached, and updated.
"""

from dataclasses import replace

from hublet.core.clock import now
from hublet.core.database import Connection, Database
from hublet.core.ids import new_object_id
from hublet.core.logs import get_logger
from hublet.oauth.apps import store as apps
from hublet.oauth.apps.records import Logo
from hublet.oauth.client_metadata import store
from hublet.oauth.client_metadata.document import (
    CachedDocument,
    ClientDocument,
    FetchedDocument,
    broken_client_id_rule,
    read_document,
)
from hublet.oauth.client_metadata.fetcher import fetch_document, fetch_logo, single_flight_of
from hublet.oauth.errors import DocumentRefused, UnknownApp
from hublet.oauth.records import TOKEN_SECONDS, AppKind, OAuthApp
from hublet.oauth.redirect_uris import redirect_hosts

MAX_UNUSED = 10_000
SURPLUS_BATCH = 10

log = get_logger("oauth")


async def resolve_document_app(
    database: Database, client_id: str, *, may_be_stale: bool
) -> OAuthApp:
    """Return the app of a document, fetched again when the cached copy is no longer fresh."""
    issuer = database.hub.settings.base_url
    if not client_id.startswith(("https://", "http://")):
        raise UnknownApp
    if objection := broken_client_id_rule(client_id, issuer=issuer):
        raise UnknownApp(objection)
    if not database.hub.settings.oauth.client_documents:
        raise UnknownApp("This hub fetches no documents of apps.")
    async with database.read() as conn:
        cached = await store.find(conn, client_id)
    if cached is not None and cached.is_usable(now(), may_be_stale=may_be_stale):
        return cached.app
    try:
        return await single_flight_of(database).share(
            client_id, lambda: _fetch_app(database, client_id)
        )
    except DocumentRefused as refused:
        log.info("client document refused", client_id=client_id, reason=refused.reason)
        raise UnknownApp(refused.reason) from None


async def _fetch_app(database: Database, client_id: str) -> OAuthApp:
    settings = database.hub.settings
    fetched = await fetch_document(settings, client_id)
    document = read_document(client_id, fetched.body, issuer=settings.base_url)
    async with database.read() as conn:
        cached = await store.find(conn, client_id)
    logo = None
    if document.logo_uri is not None and _needs_logo(cached, document):
        logo = await fetch_logo(settings, document.logo_uri)
    async with database.transaction() as conn:
        await _save(conn, client_id, document, fetched, logo)
        app = await apps.find(conn, client_id)
    if app is None:
        raise UnknownApp
    return app


def _needs_logo(cached: CachedDocument | None, document: ClientDocument) -> bool:
    return cached is None or cached.logo_uri != document.logo_uri or cached.app.logo_uri is None


async def _save(
    conn: Connection,
    client_id: str,
    document: ClientDocument,
    fetched: FetchedDocument,
    logo: Logo | None,
) -> None:
    await conn.lock(f"app {client_id}")
    cached = await store.find(conn, client_id)
    if cached is None:
        app = _new_app(client_id, document, fetched)
        await apps.add(conn, app)
        # Anybody can make up addresses; what nobody uses must not fill the database.
        surplus = await store.list_surplus(conn, keep=MAX_UNUSED, limit=SURPLUS_BATCH)
        await apps.remove(conn, surplus)
    else:
        app = _apply_document(cached, document)
        await apps.update(conn, app)
    await store.put(conn, app, fetched, logo_uri=document.logo_uri)
    if logo is not None:
        await apps.put_logo(conn, app.id, logo)
    elif cached is None or cached.logo_uri != document.logo_uri:
        await apps.remove_logo(conn, app.id)


def _new_app(client_id: str, document: ClientDocument, fetched: FetchedDocument) -> OAuthApp:
    return OAuthApp(
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


def _apply_document(cached: CachedDocument, document: ClientDocument) -> OAuthApp:
    """Return the app as the document is now; a visible change asks people for consent again."""
    before = cached.app
    app = replace(
        before,
        name=document.name,
        client_uri=document.client_uri,
        redirect_uris=document.redirect_uris,
        scopes=document.scopes,
    )
    visible = (app.name, redirect_hosts(app), document.logo_uri)
    if visible != (before.name, redirect_hosts(before), cached.logo_uri):
        app = replace(app, revision=app.revision + 1)
    return app
