"""Authorization code grant (RFC 6749, 4.1.3) with PKCE (RFC 7636)."""

from collections.abc import Sequence

from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.core.dataclasses import dataclass
from hublet.oauth.access import service as accesses
from hublet.oauth.access import store as access_store
from hublet.oauth.access.issuance import UnsavedTokens, generate_tokens, save_tokens
from hublet.oauth.access.records import EndReason, Holder, Origin
from hublet.oauth.apps import store as apps
from hublet.oauth.authorize import codes
from hublet.oauth.authorize.records import AuthorizationCode
from hublet.oauth.errors import InvalidClient, OAuthError, invalid_grant, invalid_request
from hublet.oauth.grants.context import (
    GrantContext,
    GrantResult,
    TokenRequest,
    check_resource,
    check_target,
)
from hublet.oauth.records import Access, OAuthApp, Via


@dataclass(frozen=True, slots=True, kw_only=True)
class _CodeRequest:
    """Parameters of the request, checked before the code is read."""

    value: str
    redirect_uri: str | None
    verifier: str | None
    request: TokenRequest
    # As this request calls the hub; others of the bulk may call it otherwise.
    base_url: str
    # None where only the code says which it is.
    app: OAuthApp | None


async def redeem(context: GrantContext, request: TokenRequest) -> GrantResult:
    base_url = context.database.hub.settings.base_url
    check_target(request, base_url=base_url)
    verifier = request.find("code_verifier")
    if verifier is not None and not codes.is_verifier(verifier):
        raise invalid_request("code_verifier must have 43 to 128 characters of A-Z a-z 0-9 - . _ ~")
    value = request.get("code")
    credentials = request.credentials
    code_request = _CodeRequest(
        value=value,
        redirect_uri=request.find("redirect_uri"),
        verifier=verifier,
        request=request,
        base_url=base_url,
        app=await context.clients.authenticate(credentials) if credentials.is_given else None,
    )
    return await context.write_with_others(_redeem, code_request, key=value)


async def _redeem(
    conn: Connection, requests: Sequence[_CodeRequest]
) -> Sequence[GrantResult | OAuthError]:
    found = await codes.lock(conn, [each.value for each in requests])
    checked = [
        await _check(conn, request, code) for request, code in zip(requests, found, strict=True)
    ]
    await _end_reused(conn, [each for each in checked if isinstance(each, _Reused)])
    refused = [_invalid_code() if isinstance(each, _Reused) else each for each in checked]
    redeemed = iter(await _issue(conn, [each for each in refused if isinstance(each, _Redeemable)]))
    return [each if isinstance(each, OAuthError) else next(redeemed) for each in refused]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Redeemable:
    """A code that its app may redeem."""

    app: OAuthApp
    code: AuthorizationCode


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reused:
    """A code that was used before, and what it gave then."""

    access_id: str | None


async def _check(
    conn: Connection, code_request: _CodeRequest, code: AuthorizationCode | None
) -> _Redeemable | _Reused | OAuthError:
    """Check all rules; some refusals use up the code, or end what it gave."""
    if code is None:
        return _invalid_code()
    try:
        app = code_request.app or await _get_app_of(conn, code)
        if code.content.permission.app_id != app.id:
            # It stays unused: otherwise any app could use up the codes of others.
            return _invalid_code()
        if code.used_at is not None:
            return _Reused(access_id=code.access_id)
        _check_binding(app, code, code_request)
    except OAuthError as error:
        return error
    if code.content.challenge and not codes.verifier_matches(
        code_request.verifier or "", code.content.challenge
    ):
        # The code is used up: a verifier can be guessed once.
        await codes.use(conn, [(code, None)])
        return invalid_grant("code_verifier does not belong to the code_challenge.")
    return _Redeemable(app=app, code=code)


async def _get_app_of(conn: Connection, code: AuthorizationCode) -> OAuthApp:
    """Return the app of a code, for a client that does not say who it is.

    The public JavaScript client sends neither a client id nor a header. The code names the app;
    where that has no secret, the verifier alone proves who may redeem the code.
    """
    app = await apps.find_by_id(conn, code.content.permission.app_id)
    if app is None or app.confidential:
        raise InvalidClient("client_id and the client secret are required.")
    return app


def _check_binding(app: OAuthApp, code: AuthorizationCode, code_request: _CodeRequest) -> None:
    if code.expires_at <= now():
        raise _invalid_code()
    permission = code.content.permission
    check_resource(code_request.request, permission, base_url=code_request.base_url)
    if code_request.redirect_uri != code.content.redirect_uri:
        raise invalid_grant("redirect_uri must be the one of the authorization request.")
    if code.content.challenge is None:
        # An app whose secret was deleted meanwhile would have to prove nothing.
        if not app.confidential:
            raise invalid_grant("An app without a secret needs a code_challenge.")
        if code_request.verifier is not None:
            raise invalid_grant("code_verifier: the authorization request had no code_challenge.")
    elif code_request.verifier is None:
        raise invalid_grant("code_verifier is required for this code.")


async def _issue(
    conn: Connection, redeemable: Sequence[_Redeemable]
) -> Sequence[GrantResult | OAuthError]:
    if not redeemable:
        return []
    holders = await accesses.list_holders(
        conn, [each.code.content.permission for each in redeemable]
    )
    begun: list[tuple[_Redeemable, Access, Holder, UnsavedTokens]] = []
    for each, holder in zip(redeemable, holders, strict=True):
        if isinstance(holder, Holder):
            access = _new_access(each.code)
            scopes = access.permission.scopes
            unsaved = generate_tokens(conn.hub, each.app, access, holder=holder, scopes=scopes)
            begun.append((each, access, holder, unsaved))
    await codes.use(conn, [(each.code, access.id) for each, access, _, _ in begun])
    await access_store.add(conn, [access for _, access, _, _ in begun])
    await save_tokens(conn, [unsaved for _, _, _, unsaved in begun])
    results = iter([_result(each, holder, unsaved) for each, _, holder, unsaved in begun])
    return [each if isinstance(each, OAuthError) else next(results) for each in holders]


def _new_access(code: AuthorizationCode) -> Access:
    content = code.content
    origin = Origin(
        session_id=content.session_id,
        authenticated_at=content.authenticated_at,
        address=content.address,
        agent=content.agent,
    )
    return accesses.new_access(content.permission, Via.code, origin=origin)


def _result(redeemed: _Redeemable, holder: Holder, unsaved: UnsavedTokens) -> GrantResult:
    content = redeemed.code.content
    return GrantResult(
        app=redeemed.app,
        user_id=holder.user_id,
        issued=unsaved.issued,
        organization_ids=tuple(holder.organizations),
        nonce=content.nonce,
        authenticated_at=content.authenticated_at,
        session_id=content.session_id,
    )


async def _end_reused(conn: Connection, reused: Sequence[_Reused]) -> None:
    """End the accesses of used codes: the second client may be a thief (RFC 6749, 4.1.2).

    All at once, so that they are locked in the order in which refreshes lock theirs.
    """
    access_ids = [each.access_id for each in reused if each.access_id is not None]
    await accesses.end(conn, access_ids, EndReason.reuse)


def _invalid_code() -> OAuthError:
    return invalid_grant("The code is unknown, has expired or was used before.")
