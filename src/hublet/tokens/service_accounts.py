"""Tokens that administrators of an organization manage: of service accounts, and given for it."""

from pydantic import MISSING

from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.records import Actor, Organization, User
from hublet.core.database import Connection
from hublet.tokens import service, store
from hublet.tokens.errors import TokenNotFound
from hublet.tokens.records import Grants, TokenRecord, TokenRole
from hublet.tokens.schemas import CreateToken


async def issue(
    conn: Connection, actor: Actor, organization: Organization, account: User, request: CreateToken
) -> tuple[TokenRecord, str]:
    """Issue a token; return it with its value, this once."""
    token, value = await service.issue(
        conn,
        user_id=account.id,
        name=request.name,
        role=_role(request),
        grants=None if request.scopes is MISSING else Grants(everywhere=frozenset(request.scopes)),
        expires_at=None if request.expiresAt is MISSING else request.expiresAt,
    )
    await audit.record(
        conn, organization.id, actor, "service-account-token.create", target=account.name,
        details={"token_id": token.id, "name": token.name, "role": token.role},
    )  # fmt: skip
    return token, value


async def revoke(
    conn: Connection, actor: Actor, organization: Organization, account: User, token_id: str
) -> None:
    """Revoke a token for good; doing it again changes nothing."""
    token = await store.find(conn, token_id, user_id=account.id)
    if token is None:
        raise TokenNotFound(token_id)
    if token.revoked_at is not None:
        return
    await service.revoke(conn, token_id=token.id, user_id=account.id, reason="organization")
    await audit.record(
        conn, organization.id, actor, "service-account-token.revoke", target=account.name,
        details={"token_id": token.id, "name": token.name},
    )  # fmt: skip


async def revoke_given(
    conn: Connection, actor: Actor, organization: Organization, token_id: str
) -> None:
    """Revoke a credential that was given for the organization; its owner is told so.

    What an app holds ends with all that it got with the same consent: a new one would come at once.
    """
    found = await store.find_for_organization(conn, organization.id, token_id)
    if found is None:
        raise TokenNotFound(token_id)
    token, user_name = found
    await service.revoke(conn, token_id=token.id, user_id=token.user_id, reason="organization")
    if token.access_id is not None:
        await service.revoke_of_accesses(conn, [token.access_id])
    await audit.record(
        conn, organization.id, actor, "member-token.revoke", target=user_name,
        details={"token_id": token.id, "name": token.name},
    )  # fmt: skip


def _role(request: CreateToken) -> TokenRole:
    """Scopes alone say that the token is a fine-grained one."""
    if request.scopes is not MISSING and "role" not in request.model_fields_set:
        return TokenRole.fine_grained
    return TokenRole(request.role)
