"""Dynamic registration: apps that register by themselves (RFC 7591)."""

from collections.abc import Mapping
from typing import Any, get_args

from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.core.ids import new_object_id
from hublet.oauth.apps import service as apps
from hublet.oauth.apps import store as apps_store
from hublet.oauth.apps.errors import InvalidApp
from hublet.oauth.apps.schemas import MAX_REDIRECT_URIS
from hublet.oauth.apps.secrets import service as secrets
from hublet.oauth.metadata import (
    GRANTS,
    InvalidMetadata,
    check_grants,
    check_no_private_keys,
    name_in,
    object_in,
    scopes_in,
    strings_in,
)
from hublet.oauth.records import App, AppKind
from hublet.oauth.redirect_uris import RedirectUriRefused, host_of
from hublet.oauth.registration.errors import (
    RegistrationClosed,
    invalid_metadata,
    invalid_redirect_uri,
)
from hublet.oauth.registration.records import Registration
from hublet.oauth.registration.schemas import AuthMethod

MAX_BODY = 65_536


async def register(conn: Connection, body: bytes) -> Registration:
    """Add an app as it describes itself; whoever asked stays unknown."""
    if not conn.hub.settings.oauth.registration:
        raise RegistrationClosed
    if len(body) > MAX_BODY:
        raise invalid_metadata(f"The body must have at most {MAX_BODY} bytes.")
    try:
        stated = object_in(body, what="body")
        app, method = _app(stated), _auth_method(stated)
        check_no_private_keys(stated)
        grant_types = _grant_types(stated)
    except InvalidMetadata as error:
        raise invalid_metadata(error.reason) from None
    await apps_store.add(conn, app)
    secret = None if method == "none" else (await secrets.issue(conn, app.id))[1]
    return Registration(app=app, auth_method=method, grant_types=grant_types, secret=secret)


def _app(stated: Mapping[str, Any]) -> App:
    at = now()
    redirect_uris = _redirect_uris(stated)
    return App(
        id=new_object_id(),
        client_id=apps.new_client_id(),
        kind=AppKind.dynamic,
        name=name_in(stated) if "client_name" in stated else host_of(redirect_uris[0]),
        client_uri=_client_uri(stated),
        redirect_uris=redirect_uris,
        scopes=scopes_in(stated),
        token_seconds=apps.TOKEN_SECONDS,
        created_at=at,
        updated_at=at,
    )


def _redirect_uris(stated: Mapping[str, Any]) -> tuple[str, ...]:
    uris = stated.get("redirect_uris")
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        raise invalid_redirect_uri("redirect_uris must be a list of texts.")
    if not 1 <= len(uris) <= MAX_REDIRECT_URIS:
        raise invalid_redirect_uri(f"redirect_uris must list 1 to {MAX_REDIRECT_URIS} URIs.")
    try:
        return apps.checked_redirect_uris(uris, field="redirect_uris")
    except RedirectUriRefused as refusal:
        raise invalid_redirect_uri(refusal.message) from None


def _client_uri(stated: Mapping[str, Any]) -> str | None:
    uri = stated.get("client_uri")
    if uri is None:
        return None
    if not isinstance(uri, str):
        raise InvalidMetadata("client_uri must be a text.")
    try:
        return apps.checked_uri(uri, field="client_uri")
    except (InvalidApp, RedirectUriRefused) as refusal:
        raise InvalidMetadata(refusal.message) from None


def _auth_method(stated: Mapping[str, Any]) -> str:
    # RFC 7591, 2: who says nothing gets a secret.
    method = stated.get("token_endpoint_auth_method", "client_secret_basic")
    methods = get_args(AuthMethod)
    if method not in methods:
        raise InvalidMetadata(f"token_endpoint_auth_method must be one of: {', '.join(methods)}.")
    return str(method)


def _grant_types(stated: Mapping[str, Any]) -> tuple[str, ...]:
    check_grants(stated)
    if "grant_types" not in stated:
        return ("authorization_code", "refresh_token")
    asked = strings_in(stated, "grant_types")
    return tuple(grant for grant in GRANTS if grant in asked)
