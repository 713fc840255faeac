"""Rules of apps: who may register, change and delete one, and what else changes with it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from hmac import compare_digest
from typing import Any

from pydantic import MISSING

from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Actor, Organization, Role
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id, random_bytes
from hublet.oauth.access import service as accesses
from hublet.oauth.access.records import EndReason
from hublet.oauth.apps import store
from hublet.oauth.apps.records import ManagedApp, WorkingSecret
from hublet.oauth.apps.schemas import CreateApp, UpdateApp
from hublet.oauth.errors import AppNotFound, InvalidApp, TooManyApps
from hublet.oauth.records import COMMAND_LINE_CLIENT_ID, TOKEN_SECONDS, AppKind, OAuthApp
from hublet.oauth.redirect_uris import check_registrable, redirect_hosts
from hublet.tokens import service as tokens
from hublet.tokens.records import ALL_SCOPES

# The client asks for a new token when less than a day is left: a short life means many requests.
COMMAND_LINE_TOKEN_LIFE = timedelta(days=30)
MAX_APPS = 100


async def find_app(conn: Reader, client_id: str) -> OAuthApp | None:
    """Return the app that the hub knows under this id; documents are not fetched for it."""
    # No database takes NUL or half a character.
    return await store.find(conn, client_id) if client_id.isprintable() else None


async def find_secret_of(conn: Reader, app: OAuthApp, secret: str) -> WorkingSecret | None:
    """Compare in constant time; a replaced secret counts until it expires."""
    digests = [digest.encode() for digest in tokens.digests_of(conn.hub.keys, secret)]
    known = await store.list_working_secrets(conn, app.id)
    # All pairs are compared, whichever fits.
    fitting = [
        each for each in known for one in digests if compare_digest(one, each.digest.encode())
    ]
    return fitting[0] if fitting else None


async def list_of(conn: Reader, *, user_id: str) -> list[ManagedApp]:
    """Return the apps that a user manages: their own, and of organizations they administer."""
    return await store.list_managed(conn, user_id=user_id)


async def get(conn: Reader, client_id: str, *, user_id: str) -> ManagedApp:
    """Return an app that this user manages."""
    app = await store.find_managed(conn, client_id, user_id=user_id)
    if app is None:
        raise AppNotFound(client_id)
    return app


async def get_any(conn: Reader, client_id: str) -> ManagedApp:
    """Return any app, with what its managers see."""
    app = await store.find_managed(conn, client_id)
    if app is None:
        raise AppNotFound(client_id)
    return app


async def create(conn: Connection, actor: Actor, request: CreateApp) -> ManagedApp:
    """Register an app without a secret, for the person who acts or for an organization."""
    if actor.id is None:
        raise InvalidApp("owner: an app is registered by a user.")
    bound = None
    if request.organization is not MISSING:
        bound = await organizations.get_as(
            conn, request.organization, user_id=actor.id, needed=Role.admin
        )
    return await register(conn, actor, request, owner_id=actor.id, bound=bound)


async def register(
    conn: Connection,
    actor: Actor,
    request: CreateApp,
    *,
    owner_id: str | None,
    bound: Organization | None,
) -> ManagedApp:
    """Add an app on behalf of its owner; the caller has checked who may do so."""
    at = now()
    app = OAuthApp(
        id=new_object_id(),
        client_id=new_client_id(),
        kind=AppKind.registered,
        owner_id=owner_id,
        organization_id=bound.id if bound else None,
        name=request.name,
        client_uri=None if request.clientUri is MISSING else validate_uri(request.clientUri),
        redirect_uris=validate_redirect_uris(request.redirectUris),
        scopes=frozenset(request.scopes),
        dynamic_query=request.dynamicQuery,
        token_seconds=TOKEN_SECONDS,
        created_at=at,
        updated_at=at,
    )
    await _check_app_limit(conn, app)
    await store.add(conn, app)
    await write_audit(conn, actor, app, "oauth-app.create")
    return await get_any(conn, app.client_id)


def new_client_id() -> str:
    """Return an id that no address of a document looks like."""
    return random_bytes(16).hex()


async def _check_app_limit(conn: Connection, app: OAuthApp) -> None:
    await conn.lock(f"apps of {app.organization_id or app.owner_id}")
    count = await store.count_of(conn, owner_id=app.owner_id, organization_id=app.organization_id)
    if count >= MAX_APPS:
        raise TooManyApps(MAX_APPS)


async def update(conn: Connection, actor: Actor, client_id: str, request: UpdateApp) -> ManagedApp:
    """Change what the request names; people are asked for consent again when they would see it."""
    before = await lock_app(conn, actor, client_id)
    app = _apply_update(before.app, request)
    if app == before.app:
        return before
    if app.name != before.app.name or redirect_hosts(app) != redirect_hosts(before.app):
        app = replace(app, revision=app.revision + 1)
    await store.update(conn, app)
    fields = sorted(request.model_fields_set)
    await write_audit(conn, actor, app, "oauth-app.update", details={"fields": fields})
    return await get(conn, client_id, user_id=actor.id or "")


def _apply_update(app: OAuthApp, request: UpdateApp) -> OAuthApp:
    if request.name is not MISSING:
        app = replace(app, name=request.name)
    if request.redirectUris is not MISSING:
        app = replace(app, redirect_uris=validate_redirect_uris(request.redirectUris))
    if request.scopes is not MISSING:
        app = replace(app, scopes=frozenset(request.scopes))
    if request.clientUri is not MISSING:
        uri = request.clientUri
        app = replace(app, client_uri=None if uri is None else validate_uri(uri))
    if request.dynamicQuery is not MISSING:
        app = replace(app, dynamic_query=request.dynamicQuery)
    return app


def validate_redirect_uris(uris: Sequence[str], *, field: str = "redirectUris") -> tuple[str, ...]:
    for index, uri in enumerate(uris):
        check_registrable(uri, field=f"{field}[{index}]")
    return tuple(dict.fromkeys(uris))


def validate_uri(uri: str, *, field: str = "clientUri") -> str:
    """Refuse what is no link to a page: browsers would open it."""
    if not uri.startswith(("https://", "http://")):
        raise InvalidApp(f"{field}: the address of a page begins with https://.")
    check_registrable(uri, field=field)
    return uri


async def delete(conn: Connection, actor: Actor, client_id: str) -> None:
    """Delete an app, and end every access that people gave it."""
    app = (await lock_app(conn, actor, client_id)).app
    await remove(conn, [app.id])
    await write_audit(conn, actor, app, "oauth-app.delete")


async def remove(conn: Connection, app_ids: Sequence[str]) -> None:
    """Remove apps; what was issued to them is revoked, all the rest goes with their rows."""
    for app_id in app_ids:
        await accesses.end_of_app(conn, app_id, EndReason.app_deleted)
    await store.remove(conn, app_ids)


async def lock_app(conn: Connection, actor: Actor, client_id: str) -> ManagedApp:
    """Return an app that the actor manages, locked until the transaction ends."""
    await conn.lock(f"app {client_id}")
    return await get(conn, client_id, user_id=actor.id or "")


async def write_audit(
    conn: Connection,
    actor: Actor,
    app: OAuthApp,
    action: str,
    *,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Write a line into the audit log of the organization that an app is bound to."""
    if app.organization_id is not None:
        about = {"name": app.name, **(details or {})}
        await audit.record(
            conn, app.organization_id, actor, action, target=app.client_id, details=about
        )


async def provision_command_line(conn: Connection) -> None:
    """Add the app of the public command line unless it is there."""
    at = now()
    app = OAuthApp(
        id=new_object_id(),
        client_id=COMMAND_LINE_CLIENT_ID,
        kind=AppKind.first_party,
        name="Command line",
        scopes=ALL_SCOPES,
        token_seconds=int(COMMAND_LINE_TOKEN_LIFE.total_seconds()),
        created_at=at,
        updated_at=at,
    )
    await store.add(conn, app)
