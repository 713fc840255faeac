"""Authorization code grant (RFC 6749, 4.1.3) with PKCE (RFC 7636)."""

from functools import partial

from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.core.dataclasses import dataclass
from hublet.core.ids import new_object_id
from hublet.oauth.access import service as accesses
from hublet.oauth.access.issuance import issue_tokens
from hublet.oauth.access.records import EndReason, Origin
from hublet.oauth.apps import store as apps
from hublet.oauth.authorize import codes
from hublet.oauth.authorize.records import AuthorizationCode
from hublet.oauth.clients import authenticate
from hublet.oauth.errors import InvalidClient, OAuthError, invalid_grant, invalid_request
from hublet.oauth.grants.context import (
    GrantContext,
    GrantResult,
    TokenRequest,
    check_resource,
    check_target,
)
from hublet.oauth.records import OAuthApp, Via


@dataclass(frozen=True, slots=True, kw_only=True)
class _CodeRequest:
    """Parameters of the request, checked before the code is read."""

    value: str
    redirect_uri: str | None
    verifier: str | None
    request: TokenRequest


async def redeem(context: GrantContext, request: TokenRequest) -> GrantResult:
    check_target(request, base_url=context.database.hub.settings.base_url)
    verifier = request.find("code_verifier")
    if verifier is not None and not codes.is_verifier(verifier):
        raise invalid_request("code_verifier must have 43 to 128 characters of A-Z a-z 0-9 - . _ ~")
    code_request = _CodeRequest(
        value=request.get("code"),
        redirect_uri=request.find("redirect_uri"),
        verifier=verifier,
        request=request,
    )
    return await context.write(partial(_redeem, code_request))


async def _redeem(code_request: _CodeRequest, conn: Connection) -> GrantResult | OAuthError:
    app = (
        await authenticate(conn, code_request.request.credentials)
        if _names_app(code_request)
        else None
    )
    code = await codes.find(conn, code_request.value)
    if code is None:
        raise _invalid_code()
    app = app or await _get_app_of(conn, code)
    if code.content.permission.app_id != app.id:
        # It stays unused: otherwise any app could use up the codes of others.
        raise _invalid_code()
    if code.used_at is not None:
        return await _refuse_reuse(conn, code)
    if code.expires_at <= now():
        raise _invalid_code()
    base_url = conn.hub.settings.base_url
    check_resource(code_request.request, code.content.permission, base_url=base_url)
    _check_binding(app, code, code_request)
    if code.content.challenge and not codes.verifier_matches(
        code_request.verifier or "", code.content.challenge
    ):
        # The code is used up: a verifier can be guessed once.
        await codes.use(conn, code, access_id=None)
        return invalid_grant("code_verifier does not belong to the code_challenge.")
    return await _issue(conn, app, code)


def _names_app(code_request: _CodeRequest) -> bool:
    return code_request.request.credentials.is_given


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
    conn: Connection, app: OAuthApp, code: AuthorizationCode
) -> GrantResult | OAuthError:
    content = code.content
    holder = await accesses.get_holder(conn, content.permission)
    access_id = new_object_id()
    if not await codes.use(conn, code, access_id=access_id):
        return await _refuse_reuse(conn, await codes.reload(conn, code))
    origin = Origin(
        session_id=content.session_id,
        authenticated_at=content.authenticated_at,
        address=content.address,
        agent=content.agent,
    )
    access = await accesses.begin(
        conn, content.permission, Via.code, origin=origin, access_id=access_id
    )
    scopes = content.permission.scopes
    return GrantResult(
        app=app,
        user_id=holder.user_id,
        issued=await issue_tokens(conn, app, access, holder=holder, scopes=scopes),
        organization_ids=tuple(holder.organizations),
        nonce=content.nonce,
        authenticated_at=content.authenticated_at,
        session_id=content.session_id,
    )


async def _refuse_reuse(conn: Connection, code: AuthorizationCode) -> OAuthError:
    """End the access of a used code: the second client may be a thief (RFC 6749, 4.1.2)."""
    if code.access_id is not None:
        await accesses.end(conn, [code.access_id], EndReason.reuse)
    return _invalid_code()


def _invalid_code() -> OAuthError:
    return invalid_grant("The code is unknown, has expired or was used before.")
