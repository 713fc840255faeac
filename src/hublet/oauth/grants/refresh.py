"""Refresh token (RFC 6749, 6), replaced each time it is used (RFC 9700, 4.14.2)."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.oauth.access import service as accesses
from hublet.oauth.access.issuing import draw, issue_access_token, keep
from hublet.oauth.access.records import EndReason, Holder, Issued
from hublet.oauth.access.refreshes import answers
from hublet.oauth.access.refreshes import service as refreshes
from hublet.oauth.access.refreshes.records import Refresh
from hublet.oauth.clients import authenticated
from hublet.oauth.errors import OAuthError, invalid_grant
from hublet.oauth.grants import holders
from hublet.oauth.grants.desk import Desk
from hublet.oauth.grants.records import Answer, TokenRequest, check_target
from hublet.oauth.records import App
from hublet.oauth.scopes import requested_scopes
from hublet.tokens.records import Scope

# An answer gets lost, or several processes refresh at once: none of them is a thief.
GRACE = timedelta(seconds=60)


async def redeem(desk: Desk, request: TokenRequest) -> Answer:
    check_target(request, base_url=desk.database.hub.settings.base_url)
    value = request.get("refresh_token")
    return await desk.write(partial(_redeem, request, value))


async def _redeem(request: TokenRequest, value: str, conn: Connection) -> Answer | OAuthError:
    app = await authenticated(conn, request.presented)
    refresh = await refreshes.find(conn, value)
    if refresh is None or refresh.access.permission.app_id != app.id or not refresh.is_alive:
        raise _not_valid()
    permission = refresh.access.permission
    scopes = requested_scopes(request.find("scope"), allowed=permission.scopes)
    if not await accesses.use(conn, refresh.access.id):
        raise _not_valid()
    if refresh.replaced_at is None:
        successor = await _successor(conn, app, refresh, scopes=scopes, presented=value)
        if successor is not None:
            return successor
    # It was used before, or another process was faster just now.
    refresh = await refreshes.find(conn, value) or refresh
    if refresh.replaced_at is None or refresh.replaced_at + GRACE <= now():
        await accesses.end(conn, [refresh.access.id], EndReason.reuse)
        return _not_valid()
    return await _again(conn, app, refresh, scopes=scopes, presented=value)


async def _successor(
    conn: Connection, app: App, refresh: Refresh, *, scopes: frozenset[Scope], presented: str
) -> Answer | None:
    """Replace the refresh token; None when somebody else was faster."""
    holder = await _holder(conn, refresh)
    drawn = draw(conn.hub, app, refresh.access, holder=holder, scopes=scopes)
    sealed = answers.seal(drawn.issued, presented=presented)
    if not await refreshes.replace(conn, refresh, sealed_answer=sealed):
        return None
    await keep(conn, drawn, refresh.access, generation=refresh.generation + 1)
    return _answer(app, refresh, drawn.issued, tuple(holder.organizations))


async def _again(
    conn: Connection, app: App, refresh: Refresh, *, scopes: frozenset[Scope], presented: str
) -> Answer:
    """Give the same answer once more: one successor, however many ask for it."""
    holder = await _holder(conn, refresh)
    issued = answers.unseal(refresh.sealed_answer or b"", presented=presented)
    if issued.scopes != scopes:
        # Who asks for other scopes gets them, beside the same refresh token.
        narrowed = await issue_access_token(conn, app, refresh.access, holder=holder, scopes=scopes)
        issued = replace(narrowed, refresh_token=issued.refresh_token)
    return _answer(app, refresh, issued, tuple(holder.organizations))


async def _holder(conn: Connection, refresh: Refresh) -> Holder:
    permission = refresh.access.permission
    if permission.organization_ids:
        return await holders.get(conn, permission)
    # Most select no organization: then all there is to know came with the refresh token.
    return Holder(user_id=permission.user_id, user_name=refresh.user_name, organizations={})


def _answer(
    app: App, refresh: Refresh, issued: Issued, organization_ids: tuple[str, ...]
) -> Answer:
    access = refresh.access
    return Answer(
        app=app,
        user_id=access.permission.user_id,
        issued=issued,
        organization_ids=organization_ids,
        authenticated_at=access.authenticated_at,
        session_id=access.session_id,
    )


def _not_valid() -> OAuthError:
    return invalid_grant("The refresh token is unknown, has expired, or was revoked or replaced.")
