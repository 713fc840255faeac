"""HTTP for userinfo."""

from typing import Annotated, Any

from fastapi import Depends, Request

from hublet.core.database import Reader
from hublet.core.http import ReadConn, Router
from hublet.core.http.exchange import exchange_of
from hublet.oauth.claims import claims_of
from hublet.oauth.userinfo.schemas import Userinfo
from hublet.tokens.auth import Credentials, OpenIdUser, caller_of
from hublet.tokens.errors import ScopeNeeded
from hublet.tokens.records import Caller, Scope, TokenRole

router = Router(tags=["oauth"])


async def _identify(request: Request, _shown: Credentials) -> Caller:
    """Take the token from the header, or from a form, where RFC 6750, 2.2, allows it too."""
    exchange = exchange_of(request)
    if exchange.authorization is None:
        async with request.form() as form:
            if isinstance(token := form.get("access_token"), str):
                exchange.authorization = f"Bearer {token}"
    caller = await caller_of(request)
    if Scope.openid not in caller.scopes:
        raise ScopeNeeded([Scope.openid])
    return caller


_FormUser = Annotated[Caller, Depends(_identify)]


@router.get("/oauth/userinfo", response_model=Userinfo)
async def get_userinfo(conn: ReadConn, caller: OpenIdUser) -> dict[str, Any]:
    """Tell who the token acts for, as far as its scopes reach."""
    return await _told(conn, caller)


@router.post("/oauth/userinfo", response_model=Userinfo)
async def post_userinfo(conn: ReadConn, caller: _FormUser) -> dict[str, Any]:
    """Tell the same; the token may stand in a form as `access_token`."""
    return await _told(conn, caller)


async def _told(conn: Reader, caller: Caller) -> dict[str, Any]:
    selected = [grant.entity_id for grant in caller.token.grants.scoped]
    scopes = caller.scopes
    if caller.token.organization_id is not None:
        # A token that is confined to an organization tells of no other.
        scopes = scopes - {Scope.read_memberships}
    if caller.token.role is not TokenRole.fine_grained:
        # A person's own token selects nothing: it reaches every organization of its user.
        scopes = scopes | {Scope.read_memberships}
    return await claims_of(conn, caller.user_id, scopes, selected)
