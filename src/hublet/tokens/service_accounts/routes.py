"""HTTP for the tokens of an organization's service accounts."""

from fastapi import Request

from hublet.accounts.records import Organization, User
from hublet.accounts.service_accounts import service as service_accounts
from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.schema import Done
from hublet.tokens import store
from hublet.tokens.auth import AccountOwner, actor_of
from hublet.tokens.schemas import CreatedToken, CreateToken, Token
from hublet.tokens.service_accounts import service

router = Router(
    prefix="/api/organizations/{organization}/service-accounts/{account_id}/tokens",
    tags=["service-accounts"],
)


@router.get("")
async def list_service_account_tokens(
    conn: ReadConn, caller: AccountOwner, organization: str, account_id: str
) -> list[Token]:
    """List the tokens of a service account that are not revoked; values are never shown again."""
    _, account = await _administered(conn, caller, organization, account_id)
    return [Token.of(token) for token in await store.list_of(conn, user_id=account.id)]


@router.post("")
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
    found, account = await _administered(conn, caller, organization, account_id)
    token, value = await service.issue(conn, actor_of(request, caller), found, account, body)
    return CreatedToken(token=Token.of(token), value=value)


@router.delete("/{token_id}")
async def revoke_service_account_token(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    organization: str,
    account_id: str,
    token_id: str,
) -> Done:
    """Revoke a token of a service account, effective in every process within a second."""
    found, account = await _administered(conn, caller, organization, account_id)
    await service.revoke(conn, actor_of(request, caller), found, account, token_id)
    return Done()


async def _administered(
    conn: Reader, caller: AccountOwner, name: str, account_id: str
) -> tuple[Organization, User]:
    organization = await service_accounts.get_organization(conn, name, user_id=caller.user_id)
    account = await service_accounts.get(conn, organization, account_id)
    return organization, account.user
