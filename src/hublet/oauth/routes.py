"""HTTP for the OAuth endpoints that apps call: discovery, keys, userinfo, tokens, device logins,
revocation, introspection, registration. `ROUTERS` are all routers of the feature.
"""

from functools import lru_cache
from typing import Annotated, Any

import msgspec
from fastapi import Depends, Request, Response, Security
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from hublet.core.database import Database, Reader
from hublet.core.errors import InvalidRequest
from hublet.core.http import Conn, FastRoute, Router
from hublet.core.http.error_responses import set_error_form
from hublet.core.http.exchange import exchange_of
from hublet.core.http.static_files import Document, document_response
from hublet.core.http.transactions import Db
from hublet.core.hub import Hub, Switch
from hublet.core.limits import Limiter, RateLimit, raise_when_exceeded
from hublet.core.schema import Done
from hublet.oauth import service
from hublet.oauth import signing_keys as keys
from hublet.oauth.apps.routes import logos_router as app_logos
from hublet.oauth.apps.routes import organizations_router as organization_apps
from hublet.oauth.apps.routes import router as apps
from hublet.oauth.apps.routes import secrets_router as app_secrets
from hublet.oauth.auth import CLIENT_AUTHENTICATION, grant_context_of, read_request
from hublet.oauth.authorize.routes import router as authorize
from hublet.oauth.client_metadata import registration
from hublet.oauth.client_metadata.registration import METADATA_BODY, RegisteredClient
from hublet.oauth.discovery import Discovery, Jwks, discovery_document
from hublet.oauth.errors import to_oauth_error
from hublet.oauth.id_tokens import claims_of
from hublet.oauth.pages.applications import router as application_pages
from hublet.oauth.pages.connected_apps import api_router as accesses_api
from hublet.oauth.pages.connected_apps import pages_router as connected_apps_pages
from hublet.oauth.pages.device import router as device_page
from hublet.oauth.pages.end_session import router as end_session
from hublet.oauth.publishers.routes import router as publishers
from hublet.oauth.schemas import (
    REFUSALS,
    TOKEN_FORM,
    DeviceAuthorization,
    Introspection,
    Tokens,
    Userinfo,
    form_body,
)
from hublet.tokens.auth import caller_of, identify
from hublet.tokens.cache import CallerCache
from hublet.tokens.errors import ScopeNeeded
from hublet.tokens.records import Caller, Scope, TokenRole

REGISTRATION_PATH = "/oauth/register"
REGISTRATIONS = RateLimit(name="register", quota=20, window_seconds=3600)
_REGISTRATION_REFUSALS: dict[int | str, dict[str, Any]] = {
    **{status: REFUSALS[status] for status in (400, 413, 429, 503)},
    403: REFUSALS[400] | {"description": "Apps cannot register by themselves at this hub."},
}
_NOT_MODIFIED: dict[int | str, dict[str, Any]] = {
    304: {"description": "The version in `If-None-Match` is current."}
}
# RFC 6749, 5.1: no cache may store a token.
_NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}

router = Router(tags=["oauth"])
registration_router = Router(tags=["oauth"])

ROUTERS: tuple[Router, ...] = (
    router,
    end_session,
    apps,
    app_secrets,
    app_logos,
    organization_apps,
    registration_router,
    authorize,
    device_page,
    publishers,
    accesses_api,
    connected_apps_pages,
    application_pages,
)

for path in (
    "/oauth/token",
    "/oauth/device",
    "/oauth/revoke",
    "/oauth/introspect",
    REGISTRATION_PATH,
):
    set_error_form(path, to_oauth_error)


def _discovery_of(request: Request) -> Document:
    hub: Hub = request.app.state.database.hub
    registration = hub.is_on(Switch.app_registration)
    settings = request.app.state.settings
    return _discovery(
        settings.base_url, registration=registration, documents=settings.oauth.client_documents
    )


# One for each name by which a local hub is called; the issuer must be the one that was asked.
@lru_cache(maxsize=8)
def _discovery(base_url: str, *, registration: bool, documents: bool) -> Document:
    body = discovery_document(base_url, registration=registration, documents=documents)
    return Document(body=msgspec.json.encode(body), media_type="application/json")


_DiscoveryDocument = Annotated[Document, Depends(_discovery_of)]


@router.get("/.well-known/openid-configuration", response_model=Discovery, responses=_NOT_MODIFIED)
async def get_openid_configuration(request: Request, document: _DiscoveryDocument) -> Response:
    """Tell OpenID Connect clients where everything is, and what this hub can do."""
    return document_response(request, document)


@router.get(
    "/.well-known/oauth-authorization-server", response_model=Discovery, responses=_NOT_MODIFIED
)
async def get_authorization_server(request: Request, document: _DiscoveryDocument) -> Response:
    """Tell OAuth clients the same, at the address of RFC 8414."""
    return document_response(request, document)


@router.get("/oauth/jwks", response_model=Jwks, responses=_NOT_MODIFIED)
async def get_jwks(request: Request, database: Db) -> Response:
    """Get the public keys that check ID tokens; the next one is shown a day before it signs."""
    body = msgspec.json.encode({"keys": await keys.public_keys(database)})
    return document_response(request, Document(body=body, media_type="application/json"))


async def get_userinfo(request: Request) -> bytes:
    """Tell who the token acts for, as far as its scopes reach."""
    return await _render_userinfo(request)


async def post_userinfo(request: Request) -> bytes:
    """Tell the same; the token may stand in a form as `access_token` (RFC 6750, 2.2)."""
    exchange = exchange_of(request)
    if exchange.authorization is None:
        try:
            async with request.form() as form:
                token = form.get("access_token")
        except (HTTPException, ClientDisconnect):
            raise InvalidRequest("The form cannot be read.") from None
        if isinstance(token, str):
            exchange.authorization = f"Bearer {token}"
    return await _render_userinfo(request)


async def _render_userinfo(request: Request) -> bytes:
    caller = await caller_of(request)
    if Scope.openid not in caller.scopes:
        raise ScopeNeeded([Scope.openid])
    database: Database = request.app.state.database
    async with database.read() as conn:
        return msgspec.json.encode(await _claims_of_caller(conn, caller))


async def _claims_of_caller(conn: Reader, caller: Caller) -> dict[str, Any]:
    selected = [grant.entity_id for grant in caller.token.grants.scoped]
    scopes = caller.scopes
    if caller.token.organization_id is not None:
        # A token that is confined to an organization shows no other.
        scopes = scopes - {Scope.read_memberships}
    if caller.token.role is not TokenRole.fine_grained:
        # A person's own token selects nothing: it reaches every organization of its user.
        scopes = scopes | {Scope.read_memberships}
    return await claims_of(conn, caller.user_id, scopes, selected)


for method, userinfo in (("GET", get_userinfo), ("POST", post_userinfo)):
    router.add_api_route(
        "/oauth/userinfo",
        userinfo,
        methods=[method],
        response_model=Userinfo,
        dependencies=[Security(identify, scopes=[Scope.openid])],
        route_class_override=FastRoute,
    )


async def issue_tokens(request: Request) -> Response:
    """Issue tokens for a code, a refresh token, a device code, or by token exchange.

    A workflow that a repository trusts sends its ID token as `subject_token`, and no credentials. Apps with a secret send `Authorization: Basic`, or `client_secret` in the body; others send
    `client_id`, or nothing where a code with PKCE tells who they are.
    """
    return _json_response(
        await service.issue_tokens(grant_context_of(request), await read_request(request))
    )


async def start_device_login(request: Request) -> Response:
    """Start a login on a device without a browser: a code for the app, a short one for a person."""
    return _json_response(
        await service.start_device_login(grant_context_of(request), await read_request(request))
    )


def _json_response(body: dict[str, Any]) -> Response:
    return Response(
        msgspec.json.encode(body), media_type="application/json", headers=dict(_NO_STORE)
    )


router.add_api_route(
    "/oauth/token",
    issue_tokens,
    methods=["POST"],
    response_model=Tokens,
    responses=REFUSALS,
    openapi_extra=TOKEN_FORM,
    dependencies=CLIENT_AUTHENTICATION,
    route_class_override=FastRoute,
)
router.add_api_route(
    "/oauth/device",
    start_device_login,
    methods=["POST"],
    response_model=DeviceAuthorization,
    responses=REFUSALS,
    openapi_extra=form_body("scope", required=[]),
    dependencies=CLIENT_AUTHENTICATION,
    route_class_override=FastRoute,
)


async def revoke_oauth_token(request: Request) -> bytes:
    """Revoke a token that the app got; with a refresh token, everything issued with it.

    The answer is the same for a token that is unknown, expired or somebody else's.
    """
    await service.revoke(grant_context_of(request), await read_request(request))
    return b"{}"


router.add_api_route(
    "/oauth/revoke",
    revoke_oauth_token,
    methods=["POST"],
    response_model=Done,
    responses=REFUSALS,
    openapi_extra=form_body("token", "token_type_hint", required=["token"]),
    dependencies=CLIENT_AUTHENTICATION,
    route_class_override=FastRoute,
)


async def introspect_oauth_token(request: Request) -> bytes:
    """Tell an app with a secret whether a token of its own works, and what it may do."""
    callers: CallerCache = request.app.state.callers
    return msgspec.json.encode(
        await service.introspect(grant_context_of(request), callers, await read_request(request))
    )


router.add_api_route(
    "/oauth/introspect",
    introspect_oauth_token,
    methods=["POST"],
    response_model=Introspection,
    responses=REFUSALS,
    openapi_extra=form_body("token", "token_type_hint", required=["token"]),
    dependencies=CLIENT_AUTHENTICATION,
    route_class_override=FastRoute,
)


@registration_router.post(
    REGISTRATION_PATH,
    status_code=201,
    openapi_extra=METADATA_BODY,
    responses=_REGISTRATION_REFUSALS,
)
async def register_oauth_client(request: Request, conn: Conn) -> RegisteredClient:
    """Register an app that describes itself (RFC 7591); no token is needed.

    An app that nobody uses is removed after 30 days.
    """
    limiter: Limiter = request.app.state.limiter
    raise_when_exceeded(limiter.count(REGISTRATIONS, exchange_of(request).address))
    return RegisteredClient.of(await registration.register(conn, await request.body()))
