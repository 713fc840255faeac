"""HTTP for any user's tokens, as a hub administrator manages them."""

from pydantic import MISSING

from hublet.accounts import service as accounts
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.schema import Done
from hublet.tokens import service, store
from hublet.tokens.administration.schemas import IssueToken
from hublet.tokens.auth import Administrator
from hublet.tokens.records import Grants, TokenRole
from hublet.tokens.schemas import CreatedToken, Token

router = Router(prefix="/api/admin/users/{name}/tokens", tags=["administration"])


@router.get("")
async def list_user_tokens(conn: ReadConn, _caller: Administrator, name: str) -> list[Token]:
    """List a user's tokens that are not revoked; values are never shown again."""
    user = await accounts.get_user(conn, name)
    return [Token.of(token) for token in await store.list_of(conn, user_id=user.id)]


@router.post("", responses={409: {"description": "The value was issued or imported before."}})
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


@router.delete("/{token_id}")
async def revoke_user_token(conn: Conn, _caller: Administrator, name: str, token_id: str) -> Done:
    """Revoke a user's token, effective in every process within a second."""
    user = await accounts.get_user(conn, name)
    await service.revoke(conn, token_id=token_id, user_id=user.id, reason="administrator")
    return Done()
