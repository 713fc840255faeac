"""Delegations: what a credential granted to a job, a schedule or a webhook that acts later.

A delegation outlives the credential, so that a rotated token stops nothing. Whoever uses one also
checks what its user may do by then.
"""

import msgspec

from hublet.accounts.errors import UserNotFound
from hublet.accounts.records import OrganizationLimit
from hublet.accounts.users import service as accounts
from hublet.core.clock import now
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.tokens.format import TokenKind
from hublet.tokens.records import Caller, Grants, TokenRecord, TokenRole, scopes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """In whose name, and with which rights; unless given, with all that the user has."""

    user_id: str
    role: TokenRole = TokenRole.write
    grants: Grants = Grants()
    # Rights over what the same token or app created go along.
    token_id: str = ""
    app_id: str | None = None
    # Organizations, by id, that the credential did not reach when it granted this.
    blocked: tuple[str, ...] = ()


def delegation_of(caller: Caller) -> Delegation:
    """Return a delegation of everything that the caller's credential grants."""
    token = caller.token
    return Delegation(
        user_id=caller.user_id,
        role=token.role,
        grants=token.grants,
        token_id=token.id,
        app_id=token.app_id,
        blocked=tuple(limit.organization_id for limit in caller.blocked),
    )


def delegated_caller(delegation: Delegation, *, user_name: str) -> Caller:
    """Return the caller that acts by a delegation: never an administrator of the hub."""
    # The user sends no token now: this one is stored nowhere.
    token = TokenRecord(
        id=delegation.token_id,
        kind=TokenKind.access,
        user_id=delegation.user_id,
        name="",
        role=delegation.role,
        grants=delegation.grants,
        hint="",
        created_at=now(),
        app_id=delegation.app_id,
    )
    return Caller(
        user_id=delegation.user_id,
        user_name=user_name,
        is_admin=False,
        token=token,
        scopes=scopes_of(token.role, token.grants),
        blocked=tuple(
            OrganizationLimit(organization_id=each, organization_name="")
            for each in delegation.blocked
        ),
    )


async def find_delegate(conn: Reader, delegation: Delegation) -> Caller | None:
    """Return the caller that acts by a delegation; None when the account is gone or off."""
    try:
        user = await accounts.get_user_by_id(conn, delegation.user_id)
    except UserNotFound:
        return None
    return None if user.disabled_at else delegated_caller(delegation, user_name=user.name)


def delegation_to_text(delegation: Delegation) -> str:
    return msgspec.json.encode(delegation).decode()


def delegation_from_text(text: str | None, *, creator_id: str) -> Delegation:
    """Read a stored delegation; without one, as before there were any, the creator's rights count."""
    if text is None:
        return Delegation(user_id=creator_id)
    return msgspec.json.decode(text, type=Delegation)
