"""HTTP for credentials."""

from fastapi import Request
from pydantic import MISSING

from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.exchange import exchange_of
from hublet.core.limits import Limiter, Policy, refuse_when_spent
from hublet.core.schema import Done
from hublet.tokens import service, store
from hublet.tokens.auth import AccountOwner
from hublet.tokens.records import Grants, TokenRole
from hublet.tokens.schemas import Accepted, CreatedToken, CreateToken, RevokeCredentials, Token

router = Router(tags=["auth"])


@router.post("/api/credentials/revoke", status_code=202)
async def revoke_credentials(request: Request, conn: Conn, body: RevokeCredentials) -> Accepted:
    """Revoke leaked credentials by their raw values; no token is needed.

    Each one that exists is fully invalidated within a second and its owner is told. The
    answer is the same whether or not any of them existed.
    """
    settings = conn.hub.settings.limits
    policy = Policy(name="revoke", quota=settings.revoke_requests_per_hour, window_seconds=3600)
    limiter: Limiter = request.app.state.limiter
    address = exchange_of(request).address
    refuse_when_spent(limiter.count(policy, address))
    await service.report(conn, body.credentials, address=address)
    return Accepted()


@router.get("/api/settings/tokens")
async def list_tokens(conn: ReadConn, caller: AccountOwner) -> list[Token]:
    """List the caller's own tokens that are not revoked; values are never shown again."""
    return [Token.of(token) for token in await store.list_of(conn, user_id=caller.user_id)]


@router.post("/api/settings/tokens")
async def create_token(conn: Conn, caller: AccountOwner, body: CreateToken) -> CreatedToken:
    """Create a token of the caller's own; the answer is the only one that shows its value."""
    token, value = await service.issue(
        conn,
        user_id=caller.user_id,
        name=body.name,
        role=TokenRole(body.role),
        grants=None if body.scopes is MISSING else Grants(everywhere=frozenset(body.scopes)),
        expires_at=None if body.expiresAt is MISSING else body.expiresAt,
    )
    return CreatedToken(token=Token.of(token), value=value)


@router.delete("/api/settings/tokens/{token_id}")
async def revoke_token(conn: Conn, caller: AccountOwner, token_id: str) -> Done:
    """Revoke one of the caller's own tokens, effective in every process within a second."""
    await service.revoke(conn, token_id=token_id, user_id=caller.user_id, reason="owner")
    return Done()
