"""Authorization code grant (RFC 6749, 4.1.3) with PKCE (RFC 7636)."""

from functools import partial

from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.core.ids import new_object_id
from hublet.core.light_dataclasses import dataclass
from hublet.oauth import pkce
from hublet.oauth.access import service
from hublet.oauth.access.issuance import issue_tokens
from hublet.oauth.access.records import EndReason, Origin
from hublet.oauth.apps import store as apps
from hublet.oauth.authorize import codes
from hublet.oauth.authorize.records import AuthorizationCode
from hublet.oauth.clients import authenticate
from hublet.oauth.errors import InvalidClient, OAuthError, invalid_grant, invalid_request
from hublet.oauth.grants.context import GrantContext, GrantResult, TokenRequest, check_target
from hublet.oauth.records import OAuthApp, Via


@dataclass(frozen=True, slots=True, kw_only=True)
class _CodeRequest:
    """What the request itself says, checked before any code is looked at."""

    value: str
    redirect_uri: str | None
    verifier: str | None
    request: TokenRequest


async def redeem(desk: GrantContext, request: TokenRequest) -> GrantResult:
    check_target(request, base_url=desk.database.hub.settings.base_url)
    verifier = request.find("code_verifier")
    if verifier is not None and not pkce.is_verifier(verifier):
        raise invalid_request("code_verifier must have 43 to 128 characters of A-Z a-z 0-9 - . _ ~")
    asked = _CodeRequest(
        value=request.get("code"),
        redirect_uri=request.find("redirect_uri"),
        verifier=verifier,
        request=request,
    )
    return await desk.write(partial(_redeem, asked))


async def _redeem(asked: _CodeRequest, conn: Connection) -> GrantResult | OAuthError:
    app = await authenticate(conn, asked.request.presented) if _names_app(asked) else None
    code = await codes.find(conn, asked.value)
    if code is None:
        raise _invalid_code()
    app = app or await _app_of(conn, code)
    if code.content.permission.app_id != app.id:
        # Not spent: otherwise anybody could spend the codes of others.
        raise _invalid_code()
    if code.used_at is not None:
        return await _refuse_reuse(conn, code)
    if code.expires_at <= now():
        raise _invalid_code()
    _check_binding(app, code, asked)
    if code.content.challenge and not pkce.verifier_matches(
        asked.verifier or "", code.content.challenge
    ):
        # Spent: whoever guesses has one guess.
        await codes.use(conn, code, access_id=None)
        return invalid_grant("code_verifier does not belong to the code_challenge.")
    return await _issue(conn, app, code)


def _names_app(asked: _CodeRequest) -> bool:
    return asked.request.presented.is_given


async def _app_of(conn: Connection, code: AuthorizationCode) -> OAuthApp:
    """Return whose code it is, for a client that does not say who it is.

    The public JavaScript client sends neither a client id nor a header. The code tells, where
    the app has no secret and the verifier alone proves who may redeem it.
    """
    app = await apps.find_by_id(conn, code.content.permission.app_id)
    if app is None or app.confidential:
        raise InvalidClient("client_id and the client secret are required.")
    return app


def _check_binding(app: OAuthApp, code: AuthorizationCode, asked: _CodeRequest) -> None:
    if asked.redirect_uri != code.content.redirect_uri:
        raise invalid_grant("redirect_uri must be the one of the authorization request.")
    if code.content.challenge is None:
        # An app whose secret was deleted since must not be served without any proof.
        if not app.confidential:
            raise invalid_grant("An app without a secret needs a code_challenge.")
        if asked.verifier is not None:
            raise invalid_grant("code_verifier: the authorization request had no code_challenge.")
    elif asked.verifier is None:
        raise invalid_grant("code_verifier is required for this code.")


async def _issue(
    conn: Connection, app: OAuthApp, code: AuthorizationCode
) -> GrantResult | OAuthError:
    content = code.content
    holder = await service.get_holder(conn, content.permission)
    access_id = new_object_id()
    if not await codes.use(conn, code, access_id=access_id):
        faster = await codes.find_again(conn, code)
        return await _refuse_reuse(conn, faster)
    origin = Origin(
        session_id=content.session_id,
        authenticated_at=content.authenticated_at,
        address=content.address,
        agent=content.agent,
    )
    access = await service.begin(
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
    """RFC 6749, 4.1.2: who comes with a used code may have stolen it, so all it gave ends."""
    if code.access_id is not None:
        await service.end(conn, [code.access_id], EndReason.reuse)
    return _invalid_code()


def _invalid_code() -> OAuthError:
    return invalid_grant("The code is unknown, has expired or was used before.")
