"""Tokens that administrators of an organization manage: of service accounts, and given for it."""

from dataclasses import replace

from pydantic import MISSING

from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import store as organization_store
from hublet.accounts.records import Actor, Organization, User
from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.core.database.engine import CREDENTIALS_CHANNEL
from hublet.tokens import service, store
from hublet.tokens.errors import (
    InvalidTokenRequest,
    OwnTokenNeedsOwner,
    TokenNotFound,
    UnknownValue,
)
from hublet.tokens.records import (
    PERMISSIONS,
    Caller,
    Grants,
    OrganizationToken,
    Scope,
    TokenRecord,
    TokenRole,
    scopes_of,
)
from hublet.tokens.schemas import CreateToken, UpdateServiceToken


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


async def update(
    conn: Connection,
    actor: Actor,
    organization: Organization,
    account: User,
    token_id: str,
    request: UpdateServiceToken,
) -> TokenRecord:
    """Change the name and the rights of a token; a field that is left out keeps its value."""
    before = await _get_working(conn, account, token_id)
    _refuse_what_is_not_here(request)
    token = before
    if request.displayName is not MISSING:
        token = replace(token, name=request.displayName)
    if request.permissions is not MISSING:
        scopes = frozenset(_scope_of(each) for each in request.permissions)
        grants = Grants(everywhere=scopes)
        token = replace(token, role=TokenRole.fine_grained, grants=grants)
    if request.skipNetworkSecurity is not MISSING:
        token = replace(token, skips_network_security=request.skipNetworkSecurity)
    if token == before:
        return token
    await store.update(conn, token)
    conn.wake(CREDENTIALS_CHANNEL)
    await audit.record(
        conn, organization.id, actor, "service-account-token.update", target=account.name,
        details={"token_id": token.id, "name": token.name, "permissions": permissions_of(token)}
        | ({"skip_network_security": True} if token.skips_network_security else {}),
    )  # fmt: skip
    return token


def permissions_of(token: TokenRecord) -> list[str]:
    """Return what a token may do, in the public service's names as far as it has any."""
    scopes = scopes_of(token.role, token.grants)
    return [name for name, scope in PERMISSIONS.items() if scope in scopes]


def _scope_of(permission: str) -> Scope:
    if permission not in PERMISSIONS:
        raise InvalidTokenRequest(
            f"permissions: {permission} cannot be given to a token here: what it names needs a token "
            "with the role write."
        )
    return PERMISSIONS[permission]


def _refuse_what_is_not_here(request: UpdateServiceToken) -> None:
    if _is_given(request.repoIds) or _is_given(request.repoPermissions):
        raise InvalidTokenRequest(
            "repoIds: a token of this hub reaches what its account's role in the organization and in "
            "its resource groups reaches; put the repositories into a resource group instead."
        )
    if _is_given(request.endpointPatterns):
        raise InvalidTokenRequest("endpointPatterns: this hub has no inference endpoints.")


def _is_given(values: object) -> bool:
    return values is not MISSING and values != []


async def rotate(
    conn: Connection, actor: Actor, organization: Organization, account: User, token_id: str
) -> tuple[TokenRecord, str]:
    """Revoke a token and issue another with the same rights; return it with its value, this once.

    It has another id, so that nothing that was signed for the old one works either.
    """
    old = await _get_working(conn, account, token_id)
    token, value = await service.issue(
        conn,
        user_id=account.id,
        name=old.name,
        role=old.role,
        grants=old.grants if old.role is TokenRole.fine_grained else None,
        expires_at=old.expires_at,
    )
    if old.skips_network_security:
        token = replace(token, skips_network_security=True)
        await store.update(conn, token)
    await service.revoke(conn, token_id=old.id, user_id=account.id, reason="organization")
    await audit.record(
        conn, organization.id, actor, "service-account-token.rotate", target=account.name,
        details={"token_id": token.id, "name": token.name, "old_token_id": old.id},
    )  # fmt: skip
    return token, value


async def _get_working(conn: Connection, account: User, token_id: str) -> TokenRecord:
    token = await store.find(conn, token_id, user_id=account.id)
    if token is None or token.revoked_at is not None:
        raise TokenNotFound(token_id)
    return token


async def cut_off(
    conn: Connection, actor: Actor, organization: Organization, token_id: str
) -> OrganizationToken:
    """Cut a member's credential off from the organization, for good; elsewhere it works on.

    One that reaches nothing else is revoked altogether, and its owner is told so. For what an app holds
    it counts for all that it gets with the same consent: a new one would come at once.
    """
    found = await store.find_for_organization(conn, organization.id, token_id)
    if found is None:
        raise TokenNotFound(token_id)
    token = found.token
    if token.user_id == actor.id:
        raise OwnTokenNeedsOwner
    if not await store.cut_off(conn, organization.id, token.access_id or token.id):
        return found
    if _reaches_only(token, organization) or await _is_service_account(conn, organization, token):
        await service.revoke(conn, token_id=token.id, user_id=token.user_id, reason="organization")
        if token.access_id is not None:
            await service.revoke_of_accesses(conn, [token.access_id])
    conn.wake(CREDENTIALS_CHANNEL)
    await audit.record(
        conn, organization.id, actor, "member-token.revoke", target=found.user_name,
        details={"token_id": token.id, "name": token.name},
    )  # fmt: skip
    return replace(found, cut_off_at=now())


async def cut_off_value(
    conn: Connection, actor: Actor, organization: Organization, value: str
) -> OrganizationToken:
    """Cut off the credential that has this value, such as one that was found in a public place."""
    token = await service.find_by_value(conn, value)
    if token is None:
        raise UnknownValue
    try:
        return await cut_off(conn, actor, organization, token.id)
    except TokenNotFound:
        # Whether somebody else's token exists is no business of the organization.
        raise UnknownValue from None


def _reaches_only(token: TokenRecord, organization: Organization) -> bool:
    if token.organization_id is not None:
        return True
    grants = token.grants
    return (
        token.role is TokenRole.fine_grained
        and not grants.everywhere
        and {grant.entity_id for grant in grants.scoped} == {organization.id}
    )


async def _is_service_account(
    conn: Connection, organization: Organization, token: TokenRecord
) -> bool:
    account = await organization_store.find_service_account(
        conn, token.user_id, organization_id=organization.id
    )
    return account is not None


async def inherit_cut_offs(conn: Connection, caller: Caller, token: TokenRecord) -> None:
    """Cut a new token off from whatever the token that made it is cut off from."""
    for limit in caller.blocked:
        if limit.ip_ranges is None:
            await store.cut_off(conn, limit.organization_id, token.id)


def _role(request: CreateToken) -> TokenRole:
    """Scopes alone say that the token is a fine-grained one."""
    if request.scopes is not MISSING and "role" not in request.model_fields_set:
        return TokenRole.fine_grained
    return TokenRole(request.role)
