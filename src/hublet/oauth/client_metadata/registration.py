"""Dynamic client registration (RFC 7591): apps that register by themselves."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, Self, get_args

from pydantic import MISSING

from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.core.dataclasses import dataclass
from hublet.core.hub import Switch
from hublet.core.ids import new_object_id
from hublet.core.schema import Schema
from hublet.oauth.apps import client_secrets as secrets
from hublet.oauth.apps import service as apps
from hublet.oauth.apps import store as apps_store
from hublet.oauth.apps.schemas import MAX_REDIRECT_URIS
from hublet.oauth.client_metadata.document import (
    GRANT_TYPES,
    check_grants,
    check_no_private_keys,
    client_name_in,
    parse_object,
    scopes_in,
    strings_in,
)
from hublet.oauth.errors import (
    InvalidApp,
    InvalidMetadata,
    RedirectUriRefused,
    RegistrationClosed,
    invalid_client_metadata,
    invalid_redirect_uri,
)
from hublet.oauth.records import TOKEN_SECONDS, AppKind, OAuthApp
from hublet.oauth.redirect_uris import host_of
from hublet.oauth.scopes import format_scopes

MAX_BODY_BYTES = 65_536

AuthMethod = Literal["none", "client_secret_basic", "client_secret_post"]

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
# Open, as the RFC wants it: unknown fields are ignored.
METADATA_BODY: dict[str, Any] = {
    "security": [],
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "redirect_uris": _TEXTS,
                        "client_name": _TEXT,
                        "client_uri": _TEXT,
                        "token_endpoint_auth_method": _TEXT,
                        "grant_types": _TEXTS,
                        "response_types": _TEXTS,
                        "scope": _TEXT,
                    },
                    "required": ["redirect_uris"],
                }
            }
        },
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """An app that has just registered, with the value of its secret, which is not shown again."""

    app: OAuthApp
    auth_method: str
    grant_types: tuple[str, ...]
    secret: str | None = field(default=None, repr=False)


class RegisteredClient(Schema):
    """What an app learns about itself (RFC 7591, 3.2.1)."""

    client_id: str
    # Seconds since the epoch.
    client_id_issued_at: int
    # Shown this once; it does not expire, which the RFC writes as 0.
    client_secret: str | MISSING = MISSING
    client_secret_expires_at: Literal[0] | MISSING = MISSING
    client_name: str
    client_uri: str | MISSING = MISSING
    redirect_uris: list[str]
    token_endpoint_auth_method: AuthMethod
    grant_types: list[str]
    response_types: list[str]
    scope: str

    @classmethod
    def of(cls, registered: Registration) -> Self:
        app = registered.app
        has_secret = registered.secret is not None
        fields: dict[str, Any] = {
            "client_id": app.client_id,
            "client_id_issued_at": int(app.created_at.timestamp()),
            "client_secret": registered.secret if has_secret else MISSING,
            "client_secret_expires_at": 0 if has_secret else MISSING,
            "client_name": app.name,
            "client_uri": app.client_uri or MISSING,
            "redirect_uris": list(app.redirect_uris),
            "token_endpoint_auth_method": registered.auth_method,
            "grant_types": list(registered.grant_types),
            "response_types": ["code"],
            "scope": format_scopes(app.scopes),
        }
        return cls.model_validate(fields)


async def register(conn: Connection, body: bytes) -> Registration:
    """Add an app as it describes itself; nobody is known as its owner."""
    if not conn.hub.is_on(Switch.app_registration):
        raise RegistrationClosed
    if len(body) > MAX_BODY_BYTES:
        raise invalid_client_metadata(f"The body must have at most {MAX_BODY_BYTES} bytes.")
    try:
        stated = parse_object(body, what="body")
        app, method = _app(stated), _auth_method(stated)
        check_no_private_keys(stated)
        grant_types = _grant_types(stated)
    except InvalidMetadata as error:
        raise invalid_client_metadata(error.reason) from None
    await apps_store.add(conn, app)
    secret = None if method == "none" else (await secrets.issue(conn, app.id))[1]
    return Registration(app=app, auth_method=method, grant_types=grant_types, secret=secret)


def _app(stated: Mapping[str, Any]) -> OAuthApp:
    at = now()
    redirect_uris = _redirect_uris(stated)
    return OAuthApp(
        id=new_object_id(),
        client_id=apps.new_client_id(),
        kind=AppKind.dynamic,
        name=client_name_in(stated) if "client_name" in stated else host_of(redirect_uris[0]),
        client_uri=_client_uri(stated),
        redirect_uris=redirect_uris,
        scopes=scopes_in(stated),
        token_seconds=TOKEN_SECONDS,
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
        return apps.validate_redirect_uris(uris, field="redirect_uris")
    except RedirectUriRefused as refusal:
        raise invalid_redirect_uri(refusal.message) from None


def _client_uri(stated: Mapping[str, Any]) -> str | None:
    uri = stated.get("client_uri")
    if uri is None:
        return None
    if not isinstance(uri, str):
        raise InvalidMetadata("client_uri must be a text.")
    try:
        return apps.validate_uri(uri, field="client_uri")
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
    requested = strings_in(stated, "grant_types")
    return tuple(grant for grant in GRANT_TYPES if grant in requested)
