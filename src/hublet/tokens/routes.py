"""HTTP for tokens: a user's own, any user's for administrators, those of service accounts."""

from fastapi import Request
from pydantic import MISSING

from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import service_accounts
from hublet.accounts.records import Organization, User
from hublet.accounts.users import service as accounts
from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.exchange import exchange_of
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.limits import Limiter, RateLimit, raise_when_exceeded
from hublet.core.schema import Done
from hublet.tokens import service, store
from hublet.tokens import service_accounts as account_tokens
from hublet.tokens.auth import AccountOwner, Administrator, actor_of
from hublet.tokens.records import Grants, TokenRole
from hublet.tokens.schemas import (
    Accepted,
    CreatedToken,
    CreateOwnToken,
    CreateToken,
    IssueToken,
    MemberToken,
    RevokeCredentials,
    RevokeMemberToken,
    RotatedToken,
    ServiceToken,
    Token,
    UpdateServiceToken,
)

router = Router(tags=["auth"])


@router.post("/api/credentials/revoke", status_code=202)
async def revoke_credentials(request: Request, conn: Conn, body: RevokeCredentials) -> Accepted:
    """Revoke leaked credentials by their raw values; no token is needed.

    Each one that exists is fully invalidated within a second and its owner is told. The
    answer is the same whether or not any of them existed.
    """
    settings = conn.hub.settings.limits
    policy = RateLimit(name="revoke", quota=settings.revoke_requests_per_hour, window_seconds=3600)
    limiter: Limiter = request.app.state.limiter
    address = exchange_of(request).address
    raise_when_exceeded(limiter.count(policy, address))
    await service.report(conn, body.credentials, address=address)
    return Accepted()


@router.get("/api/settings/tokens")
async def list_tokens(conn: ReadConn, caller: AccountOwner) -> list[Token]:
    """List the caller's own tokens that are not revoked; values are never shown again."""
    return [Token.of(token) for token in await store.list_of(conn, user_id=caller.user_id)]


@router.post("/api/settings/tokens")
async def create_token(conn: Conn, caller: AccountOwner, body: CreateOwnToken) -> CreatedToken:
    """Create a token of the caller's own; the answer is the only one that shows its value.

    `scopes` hold everywhere, those in `scoped` for what one owner has: the caller, or an
    organization that the caller is a member of.
    """
    token, value = await service.issue_own(conn, user_id=caller.user_id, request=body)
    await account_tokens.inherit_cut_offs(conn, caller, token)
    return CreatedToken(token=Token.of(token), value=value)


@router.delete("/api/settings/tokens/{token_id}")
async def revoke_token(conn: Conn, caller: AccountOwner, token_id: str) -> Done:
    """Revoke one of the caller's own tokens, effective in every process within a second."""
    await service.revoke(conn, token_id=token_id, user_id=caller.user_id, reason="owner")
    return Done()


administration_router = Router(prefix="/api/admin/users/{name}/tokens", tags=["administration"])


@administration_router.get("")
async def list_user_tokens(conn: ReadConn, _caller: Administrator, name: str) -> list[Token]:
    """List a user's tokens that are not revoked; values are never shown again."""
    user = await accounts.get_user(conn, name)
    return [Token.of(token) for token in await store.list_of(conn, user_id=user.id)]


@administration_router.post(
    "", responses={409: {"description": "The value was issued or imported before."}}
)
async def issue_user_token(
    conn: Conn, _caller: Administrator, name: str, body: IssueToken
) -> CreatedToken:
    """Create a token for a user, or import a value; the answer is the only one that shows it."""
    user = await accounts.get_user(conn, name)
    token, value = await service.issue(
        conn,
        user_id=user.id,
        name=body.name,
        role=TokenRole(body.role),
        grants=None if body.scopes is MISSING else Grants(everywhere=frozenset(body.scopes)),
        expires_at=None if body.expiresAt is MISSING else body.expiresAt,
        value=None if body.value is MISSING else body.value,
    )
    return CreatedToken(token=Token.of(token), value=value)


@administration_router.delete("/{token_id}")
async def revoke_user_token(conn: Conn, _caller: Administrator, name: str, token_id: str) -> Done:
    """Revoke a user's token, effective in every process within a second."""
    user = await accounts.get_user(conn, name)
    await service.revoke(conn, token_id=token_id, user_id=user.id, reason="administrator")
    return Done()


service_accounts_router = Router(
    prefix="/api/organizations/{organization}/service-accounts/{account_id}/tokens",
    tags=["service-accounts"],
)


@service_accounts_router.get("")
async def list_service_account_tokens(
    conn: ReadConn, caller: AccountOwner, organization: str, account_id: str
) -> list[Token]:
    """List the tokens of a service account that are not revoked; values are never shown again."""
    _, account = await _get_administered(conn, caller, organization, account_id)
    return [Token.of(token) for token in await store.list_of(conn, user_id=account.id)]


@service_accounts_router.post("")
async def create_service_account_token(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    organization: str,
    account_id: str,
    body: CreateToken,
) -> CreatedToken:
    """Create a token of a service account; the answer is the only one that shows its value.

    Scopes without a role make it a fine-grained one.
    """
    owner, account = await _get_administered(conn, caller, organization, account_id)
    token, value = await account_tokens.issue(conn, actor_of(request, caller), owner, account, body)
    return CreatedToken(token=Token.of(token), value=value)


@service_accounts_router.delete("/{token_id}")
async def revoke_service_account_token(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    organization: str,
    account_id: str,
    token_id: str,
) -> Done:
    """Revoke a token of a service account, effective in every process within a second."""
    owner, account = await _get_administered(conn, caller, organization, account_id)
    await account_tokens.revoke(conn, actor_of(request, caller), owner, account, token_id)
    return Done()


@service_accounts_router.patch("/{token_id}")
async def update_service_account_token(  # noqa: PLR0913, PLR0917 - the path has three names
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    organization: str,
    account_id: str,
    token_id: str,
    body: UpdateServiceToken,
) -> ServiceToken:
    """Change the name or the rights of a service account's token; what is left out stays."""
    owner, account = await _get_administered(conn, caller, organization, account_id)
    actor = actor_of(request, caller)
    token = await account_tokens.update(conn, actor, owner, account, token_id, body)
    return ServiceToken.of(token, account_tokens.permissions_of(token))


@service_accounts_router.post("/{token_id}/rotate")
async def rotate_service_account_token(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    organization: str,
    account_id: str,
    token_id: str,
) -> RotatedToken:
    """Replace a service account's token by another with the same rights; the old one ends at once."""
    owner, account = await _get_administered(conn, caller, organization, account_id)
    actor = actor_of(request, caller)
    return RotatedToken.of(*await account_tokens.rotate(conn, actor, owner, account, token_id))


organization_router = Router(
    prefix="/api/organizations/{organization}/settings/tokens", tags=["orgs"]
)


@organization_router.get("", responses=PAGED_RESPONSES)
async def list_member_tokens(
    conn: ReadConn, caller: AccountOwner, organization: str, page: PageQuery
) -> list[MemberToken]:
    """List the tokens of members and of apps that reach an organization, page by page."""
    owner = await organizations.get_administered(conn, organization, user_id=caller.user_id)
    found = await store.list_for_organization(conn, owner.id, after=page.after, limit=page.reach)
    return [
        MemberToken.of(each, organization_id=owner.id)
        for each in page.cut(found, position=lambda each: each.token.id)
    ]


@organization_router.post("/revoke")
async def revoke_member_token_by_value(
    request: Request, conn: Conn, caller: AccountOwner, organization: str, body: RevokeMemberToken
) -> MemberToken:
    """Cut a token off from an organization by its value, such as one that leaked."""
    owner = await organizations.get_administered(conn, organization, user_id=caller.user_id)
    actor = actor_of(request, caller)
    found = await account_tokens.cut_off_value(conn, actor, owner, body.token)
    return MemberToken.of(found, organization_id=owner.id)


@organization_router.post("/{token_id}/revoke")
async def revoke_member_token(
    request: Request, conn: Conn, caller: AccountOwner, organization: str, token_id: str
) -> MemberToken:
    """Cut a member's token off from an organization, for good; elsewhere it works on.

    It holds in every process within a second. One's own token cannot be cut off.
    """
    owner = await organizations.get_administered(conn, organization, user_id=caller.user_id)
    found = await account_tokens.cut_off(conn, actor_of(request, caller), owner, token_id)
    return MemberToken.of(found, organization_id=owner.id)


async def _get_administered(
    conn: Reader, caller: AccountOwner, name: str, account_id: str
) -> tuple[Organization, User]:
    organization = await service_accounts.get_organization(conn, name, user_id=caller.user_id)
    account = await service_accounts.get(conn, organization, account_id)
    return organization, account.user


ROUTERS: tuple[Router, ...] = (
    router,
    service_accounts_router,
    organization_router,
    administration_router,
)
