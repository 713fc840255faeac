"""Rules of the OAuth endpoints: issue tokens for a grant, start a device login, introspect and
revoke a token.
"""

from datetime import datetime
from functools import partial
from typing import Any

from hublet.core.database import Connection, Reader
from hublet.core.database.engine import CREDENTIALS_CHANNEL
from hublet.core.limits import RateLimit, raise_when_exceeded
from hublet.oauth import devices
from hublet.oauth.access import issuance
from hublet.oauth.access import service as accesses
from hublet.oauth.access.records import EndReason
from hublet.oauth.clients import resolve_app
from hublet.oauth.errors import InvalidClient, OAuthError, UnknownApp
from hublet.oauth.grants import GRANTS
from hublet.oauth.grants.context import GrantContext, GrantResult, TokenRequest
from hublet.oauth.id_tokens import issue_id_token
from hublet.oauth.records import OAuthApp, StartedDevice
from hublet.oauth.scopes import format_scopes, scopes_requested_by
from hublet.tokens import service as tokens
from hublet.tokens import store as token_store
from hublet.tokens.cache import CallerCache
from hublet.tokens.format import TokenKind
from hublet.tokens.records import Caller, Scope, TokenRecord

DEVICE_PAGE = "/device"
DEVICE_LOGINS = RateLimit(name="device", quota=120, window_seconds=900)
INACTIVE: dict[str, Any] = {"active": False}


async def issue_tokens(context: GrantContext, request: TokenRequest) -> dict[str, Any]:
    grant = GRANTS.get(request.get("grant_type"))
    if grant is None:
        raise OAuthError(
            "unsupported_grant_type", f"grant_type must be one of: {', '.join(GRANTS)}"
        )
    result = await grant(context, request)
    response = _token_response(result)
    if result.app is not None and Scope.openid in result.issued.scopes:
        response["id_token"] = await _issue_id_token(context, result.app, result)
    return response


def _token_response(result: GrantResult) -> dict[str, Any]:
    issued = result.issued
    response: dict[str, Any] = {
        "access_token": issued.access_token,
        "token_type": "bearer",
        "expires_in": issued.expires_in,
        "scope": format_scopes(issued.scopes),
    }
    if issued.refresh_token is not None:
        response["refresh_token"] = issued.refresh_token
    if result.issued_token_type is not None:
        response["issued_token_type"] = result.issued_token_type
    return response


async def _issue_id_token(context: GrantContext, app: OAuthApp, result: GrantResult) -> str:
    # After the commit: signing takes longer than everything else together.
    return await issue_id_token(
        context.database,
        app=app,
        user_id=result.user_id,
        scopes=result.issued.scopes - result.omitted_scopes,
        organization_ids=result.organization_ids,
        nonce=result.nonce,
        authenticated_at=result.authenticated_at,
        access_token=result.issued.access_token,
        session_id=result.session_id,
    )


async def start_device_login(context: GrantContext, request: TokenRequest) -> dict[str, Any]:
    raise_when_exceeded(context.limiter.count(DEVICE_LOGINS, request.address))
    if request.credentials.client_id is not None:
        await _resolve_client(context, request.credentials.client_id)
    app = await context.clients.authenticate(request.credentials)
    started = await context.write(partial(_start_device_login, app, request))
    address = context.database.hub.settings.base_url + DEVICE_PAGE
    return {
        "device_code": started.device_code,
        "user_code": started.user_code,
        "verification_uri": address,
        "verification_uri_complete": f"{address}?user_code={started.user_code}",
        "expires_in": int(devices.DEVICE_CODE_LIFE.total_seconds()),
        "interval": devices.INTERVAL_SECONDS,
    }


async def _resolve_client(context: GrantContext, client_id: str) -> None:
    """Load the app before a transaction is open: it may be a document on the web."""
    try:
        await resolve_app(context.database, client_id)
    except UnknownApp:
        raise InvalidClient from None


async def _start_device_login(
    app: OAuthApp, request: TokenRequest, conn: Connection
) -> StartedDevice:
    scopes = scopes_requested_by(app, request.find("scope"))
    return await devices.start(conn, app, scopes, address=request.address, agent=request.agent)


async def introspect(
    context: GrantContext, callers: CallerCache, request: TokenRequest
) -> dict[str, Any]:
    """Return what a token of the app's own may do; any other one is inactive."""
    value = request.get("token")
    app = await context.clients.authenticate(request.credentials)
    if not app.confidential:
        raise InvalidClient("Introspection is for apps with a secret.")
    caller = await callers.look_at(value)
    base_url = context.database.hub.settings.base_url
    active = _introspect_access_token(app, caller, base_url=base_url)
    if active is not None:
        return active
    async with context.database.read() as conn:
        return await _introspect_refresh_token(conn, app, value)


def _introspect_access_token(
    app: OAuthApp, caller: Caller | None, *, base_url: str
) -> dict[str, Any] | None:
    if caller is None or caller.token.app_id != app.id or caller.token.expires_at is None:
        return None
    token = caller.token
    return _active_response(
        base_url,
        app,
        {
            "scope": format_scopes(_granted_scopes(token)),
            "username": caller.user_name,
            "sub": caller.user_id,
        },
        issued_at=token.created_at,
        expires_at=caller.token.expires_at,
    ) | {"token_type": "bearer"}


def _granted_scopes(token: TokenRecord) -> frozenset[Scope]:
    """Return the scopes as they were granted.

    Of a token that is confined to an organization, the scopes elsewhere follow from those.
    """
    everywhere = token.grants.everywhere if token.organization_id is None else frozenset[Scope]()
    return everywhere.union(*(grant.scopes for grant in token.grants.scoped))


async def _introspect_refresh_token(conn: Reader, app: OAuthApp, value: str) -> dict[str, Any]:
    refresh = await issuance.find_refresh_token(conn, value)
    if refresh is None or not refresh.is_alive or refresh.replaced_at is not None:
        return INACTIVE
    permission = refresh.access.permission
    if permission.app_id != app.id:
        return INACTIVE
    return _active_response(
        conn.hub.settings.base_url,
        app,
        {
            "scope": format_scopes(permission.scopes),
            "username": refresh.user_name,
            "sub": permission.user_id,
        },
        issued_at=refresh.created_at,
        expires_at=refresh.expires_at,
    )


def _active_response(
    base_url: str,
    app: OAuthApp,
    about: dict[str, Any],
    *,
    issued_at: datetime,
    expires_at: datetime,
) -> dict[str, Any]:
    return {
        "active": True,
        "client_id": app.client_id,
        **about,
        "iat": int(issued_at.timestamp()),
        "exp": int(expires_at.timestamp()),
        "iss": base_url,
        "aud": base_url,
    }


async def revoke(context: GrantContext, request: TokenRequest) -> None:
    """Revoke a token of the app's own; any other stays, and the response is the same."""
    value = request.get("token")
    app = await context.clients.authenticate(request.credentials)
    await context.write(partial(_revoke, app, value))


async def _revoke(app: OAuthApp, value: str, conn: Connection) -> None:
    token = await tokens.find_by_value(conn, value)
    if token is None or token.app_id != app.id:
        return
    if token.kind is TokenKind.refresh and token.access_id is not None:
        await accesses.end(conn, [token.access_id], EndReason.revoked)
    elif await token_store.revoke(conn, token.id):
        # RFC 7009, 2.1: an access token goes alone, its refresh token works on.
        conn.wake(CREDENTIALS_CHANNEL)
