"""Refresh token grant (RFC 6749, 6); the token is replaced each time it is used (RFC 9700,
4.14.2).
"""

from dataclasses import replace
from datetime import timedelta
from functools import partial

from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.oauth.access import issuance
from hublet.oauth.access import service as accesses
from hublet.oauth.access import store as access_store
from hublet.oauth.access.issuance import generate_tokens, issue_access_token, save_tokens
from hublet.oauth.access.records import EndReason, Holder, IssuedTokens, RefreshToken
from hublet.oauth.clients import authenticate
from hublet.oauth.errors import OAuthError, invalid_grant
from hublet.oauth.grants.context import (
    GrantContext,
    GrantResult,
    TokenRequest,
    check_resource,
    check_target,
)
from hublet.oauth.records import OAuthApp
from hublet.oauth.scopes import requested_scopes
from hublet.tokens.records import Scope

# A lost response and several processes that refresh at once are no theft.
GRACE = timedelta(seconds=60)


async def redeem(context: GrantContext, request: TokenRequest) -> GrantResult:
    check_target(request, base_url=context.database.hub.settings.base_url)
    value = request.get("refresh_token")
    return await context.write(partial(_redeem, request, value))


async def _redeem(request: TokenRequest, value: str, conn: Connection) -> GrantResult | OAuthError:
    app = await authenticate(conn, request.credentials)
    refresh = await issuance.find_refresh_token(conn, value)
    if refresh is None or refresh.access.permission.app_id != app.id or not refresh.is_alive:
        raise _invalid_refresh_token()
    permission = refresh.access.permission
    check_resource(request, permission, base_url=conn.hub.settings.base_url)
    scopes = requested_scopes(request.find("scope"), allowed=permission.scopes)
    if not await access_store.use(conn, refresh.access.id):
        raise _invalid_refresh_token()
    if refresh.replaced_at is None:
        successor = await _issue_successor(conn, app, refresh, scopes=scopes, used_token=value)
        if successor is not None:
            return successor
    # It was used before, or another request was faster just now.
    refresh = await issuance.find_refresh_token(conn, value) or refresh
    if refresh.replaced_at is None or refresh.replaced_at + GRACE <= now():
        await accesses.end(conn, [refresh.access.id], EndReason.reuse)
        return _invalid_refresh_token()
    return await _repeat_response(conn, app, refresh, scopes=scopes, used_token=value)


async def _issue_successor(
    conn: Connection,
    app: OAuthApp,
    refresh: RefreshToken,
    *,
    scopes: frozenset[Scope],
    used_token: str,
) -> GrantResult | None:
    """Replace the refresh token; None when another request was faster."""
    holder = await _get_holder(conn, refresh)
    unsaved = generate_tokens(conn.hub, app, refresh.access, holder=holder, scopes=scopes)
    sealed = issuance.seal_response(unsaved.issued, used_token=used_token)
    if not await issuance.replace_refresh_token(conn, refresh, sealed_response=sealed):
        return None
    await save_tokens(conn, unsaved, refresh.access, generation=refresh.generation + 1)
    return _result(app, refresh, unsaved.issued, tuple(holder.organizations))


async def _repeat_response(
    conn: Connection,
    app: OAuthApp,
    refresh: RefreshToken,
    *,
    scopes: frozenset[Scope],
    used_token: str,
) -> GrantResult:
    """Return the same response once more: a token has one successor, however often it is used."""
    holder = await _get_holder(conn, refresh)
    issued = issuance.unseal_response(refresh.sealed_answer or b"", used_token=used_token)
    if issued.scopes != scopes:
        # A request for other scopes gets them, beside the same refresh token.
        narrowed = await issue_access_token(conn, app, refresh.access, holder=holder, scopes=scopes)
        issued = replace(narrowed, refresh_token=issued.refresh_token)
    return _result(app, refresh, issued, tuple(holder.organizations))


async def _get_holder(conn: Connection, refresh: RefreshToken) -> Holder:
    permission = refresh.access.permission
    if permission.organization_ids:
        return await accesses.get_holder(conn, permission)
    # Most select no organization: then the refresh token's row has all that is needed.
    return Holder(user_id=permission.user_id, user_name=refresh.user_name, organizations={})


def _result(
    app: OAuthApp, refresh: RefreshToken, issued: IssuedTokens, organization_ids: tuple[str, ...]
) -> GrantResult:
    access = refresh.access
    return GrantResult(
        app=app,
        user_id=access.permission.user_id,
        issued=issued,
        organization_ids=organization_ids,
        authenticated_at=access.authenticated_at,
        session_id=access.session_id,
    )


def _invalid_refresh_token() -> OAuthError:
    return invalid_grant("The refresh token is unknown, has expired, or was revoked or replaced.")
