"""The place of a provisioned user in the organization: taken, lost and taken again."""

from contextlib import suppress

from hublet.accounts import service as accounts
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role
from hublet.accounts.resource_groups import service as resource_groups
from hublet.accounts.resource_groups.errors import ResourceGroupNotFound
from hublet.accounts.resource_groups.members import service as group_members
from hublet.core.database import Connection
from hublet.scim.accounts import store
from hublet.scim.records import Directory, KeptRoles
from hublet.tokens import service as tokens

# Groups give more: see groups/mapping.py.
LEAST_ROLE = Role.read


async def join(conn: Connection, directory: Directory, account_id: str, *, kept: KeptRoles) -> None:
    """Make somebody a member with the roles they had; who is one already keeps theirs."""
    organization, actor = directory.organization, directory.actor
    account = await accounts.get_user_by_id(conn, account_id)
    if directory.managed:
        account = await accounts.enable_user(conn, account)
    held = await store.roles_of(conn, organization_id=organization.id, user_id=account_id)
    if held.role is None:
        role = kept.role or LEAST_ROLE
        await organizations.set_member(conn, actor, organization, account, role)
    for group_id, role in kept.resource_groups.items():
        # A group may have been deleted meanwhile.
        with suppress(ResourceGroupNotFound):
            group = await resource_groups.get(conn, organization, group_id)
            await group_members.set_member(conn, actor, organization, group, account, role)


async def leave(conn: Connection, directory: Directory, account_id: str) -> None:
    """End a membership, with every credential that reaches into the organization by itself.

    A managed account ends everywhere. Whoever has an account of their own keeps it, with the
    tokens that are for all of it: without the membership those do not reach the organization.
    """
    organization, actor = directory.organization, directory.actor
    account = await accounts.get_user_by_id(conn, account_id)
    held = await store.roles_of(conn, organization_id=organization.id, user_id=account_id)
    if held.role is not None:
        await organizations.remove_member(conn, actor, organization, account)
    if directory.managed:
        await switch_off(conn, account_id)
    else:
        await tokens.revoke_of_user(
            conn, account_id, reason="organization", organization_id=organization.id
        )


async def switch_off(conn: Connection, account_id: str) -> None:
    """End a managed account everywhere: no credential of it works again, also not later."""
    account = await accounts.get_user_by_id(conn, account_id)
    await tokens.revoke_of_user(conn, account_id, reason="organization")
    await accounts.disable_user(conn, account)
