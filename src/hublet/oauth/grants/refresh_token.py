"""Refresh token grant (RFC 6749, 6); the token is replaced each time it is used (RFC 9700,
4.14.2).
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta

from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.core.dataclasses import dataclass
from hublet.core.hub import Hub
from hublet.oauth.access import issuance
from hublet.oauth.access import service as accesses
from hublet.oauth.access import store as access_store
from hublet.oauth.access.issuance import (
    UnsavedTokens,
    generate_tokens,
    issue_access_token,
    save_tokens,
)
from hublet.oauth.access.records import EndReason, Holder, IssuedTokens, RefreshToken
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _RefreshRequest:
    app: OAuthApp
    value: str
    request: TokenRequest
    # As this request calls the hub; others of the bulk may call it otherwise.
    base_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usable:
    """A refresh token that its app may use, for these scopes."""

    app: OAuthApp
    value: str
    refresh: RefreshToken
    scopes: frozenset[Scope]


async def redeem(context: GrantContext, request: TokenRequest) -> GrantResult:
    base_url = context.database.hub.settings.base_url
    check_target(request, base_url=base_url)
    value = request.get("refresh_token")
    app = await context.clients.authenticate(request.credentials)
    refresh_request = _RefreshRequest(app=app, value=value, request=request, base_url=base_url)
    return await context.write_with_others(_redeem, refresh_request, key=value)


async def _redeem(
    conn: Connection, requests: Sequence[_RefreshRequest]
) -> Sequence[GrantResult | OAuthError]:
    found = await issuance.lock_refresh_tokens(conn, [each.value for each in requests])
    checked = [_check(*each) for each in zip(requests, found, strict=True)]
    # What ends an access ends it for all who come with a token of it.
    ended = await _end_reused(conn, [each for each in checked if isinstance(each, _Usable)])
    checked = [
        _invalid_refresh_token()
        if isinstance(each, _Usable) and each.refresh.access.id in ended
        else each
        for each in checked
    ]
    used = iter(await _use(conn, [each for each in checked if isinstance(each, _Usable)]))
    return [each if isinstance(each, OAuthError) else next(used) for each in checked]


def _check(refresh_request: _RefreshRequest, refresh: RefreshToken | None) -> _Usable | OAuthError:
    app, request = refresh_request.app, refresh_request.request
    if refresh is None or refresh.access.permission.app_id != app.id or not refresh.is_alive:
        return _invalid_refresh_token()
    permission = refresh.access.permission
    try:
        check_resource(request, permission, base_url=refresh_request.base_url)
        scopes = requested_scopes(request.find("scope"), allowed=permission.scopes)
    except OAuthError as error:
        return error
    return _Usable(app=app, value=refresh_request.value, refresh=refresh, scopes=scopes)


async def _end_reused(conn: Connection, usable: Sequence[_Usable]) -> Collection[str]:
    """End the accesses of tokens that were replaced a while ago; return their ids."""
    latest = now() - GRACE
    reused = {
        each.refresh.access.id
        for each in usable
        if each.refresh.replaced_at is not None and each.refresh.replaced_at <= latest
    }
    await accesses.end(conn, sorted(reused), EndReason.reuse)
    return reused


async def _use(conn: Connection, usable: Sequence[_Usable]) -> Sequence[GrantResult | OAuthError]:
    if not usable:
        return []
    holders = await _list_holders(conn, usable)
    await access_store.use(conn, {each.refresh.access.id for each in usable})
    successors: list[tuple[RefreshToken, UnsavedTokens, bytes]] = []
    results: list[GrantResult | OAuthError] = []
    for each, holder in zip(usable, holders, strict=True):
        if isinstance(holder, OAuthError):
            results.append(holder)
        elif each.refresh.replaced_at is not None:
            results.append(await _repeat_response(conn, each, holder))
        else:
            unsaved, sealed = _generate_successor(conn.hub, each, holder)
            successors.append((each.refresh, unsaved, sealed))
            results.append(_result(each, unsaved.issued, holder))
    await _save(conn, successors)
    return results


async def _list_holders(
    conn: Connection, usable: Sequence[_Usable]
) -> Sequence[Holder | OAuthError]:
    permissions = [each.refresh.access.permission for each in usable]
    if any(permission.organization_ids for permission in permissions):
        return await accesses.list_holders(conn, permissions)
    # Most select no organization: then the refresh token's row has all that is needed.
    return [
        Holder(
            user_id=each.refresh.access.permission.user_id,
            user_name=each.refresh.user_name,
            organizations={},
        )
        for each in usable
    ]


def _generate_successor(hub: Hub, usable: _Usable, holder: Holder) -> tuple[UnsavedTokens, bytes]:
    unsaved = generate_tokens(
        hub,
        usable.app,
        usable.refresh.access,
        holder=holder,
        scopes=usable.scopes,
        generation=usable.refresh.generation + 1,
    )
    return unsaved, issuance.seal_response(unsaved.issued, used_token=usable.value)


async def _save(
    conn: Connection, successors: Sequence[tuple[RefreshToken, UnsavedTokens, bytes]]
) -> None:
    if successors:
        await access_store.replace_refresh_tokens(
            conn, [(refresh.token_id, sealed) for refresh, _, sealed in successors]
        )
        await save_tokens(conn, [unsaved for _, unsaved, _ in successors])


async def _repeat_response(conn: Connection, usable: _Usable, holder: Holder) -> GrantResult:
    """Return the same response once more: a token has one successor, however often it is used."""
    refresh, scopes = usable.refresh, usable.scopes
    issued = issuance.unseal_response(refresh.sealed_answer or b"", used_token=usable.value)
    if issued.scopes != scopes:
        # A request for other scopes gets them, beside the same refresh token.
        narrowed = await issue_access_token(
            conn, usable.app, refresh.access, holder=holder, scopes=scopes
        )
        issued = replace(narrowed, refresh_token=issued.refresh_token)
    return _result(usable, issued, holder)


def _result(usable: _Usable, issued: IssuedTokens, holder: Holder) -> GrantResult:
    access = usable.refresh.access
    return GrantResult(
        app=usable.app,
        user_id=access.permission.user_id,
        issued=issued,
        organization_ids=tuple(holder.organizations),
        authenticated_at=access.authenticated_at,
        session_id=access.session_id,
    )


def _invalid_refresh_token() -> OAuthError:
    return invalid_grant("The refresh token is unknown, has expired, or was revoked or replaced.")
