"""The place of a provisioned user in the organization: taken, lost and taken again."""

from contextlib import suppress

from hublet.accounts import service as accounts
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role
from hublet.accounts.resource_groups import service as resource_groups
from hublet.accounts.resource_groups.errors import ResourceGroupNotFound
from hublet.accounts.resource_groups.members import service as group_members
from hublet.core.database import Connection
from hublet.scim.accounts import store, switching
from hublet.scim.errors import ScimRefusal
from hublet.scim.records import Directory, KeptRoles
from hublet.tokens import service as tokens

# Groups give more: see groups/mapping.py.
LEAST_ROLE = Role.read


async def hold(conn: Connection, directory: Directory, account_id: str | None) -> None:
    """Let nobody change somebody's place by hand until the end.

    To be called before a user is written: by hand the place changes first, and the user with it.
    """
    if account_id is not None:
        account = await accounts.get_user_by_id(conn, account_id)
        await organizations.hold_membership(conn, directory.organization, account)


async def join(conn: Connection, directory: Directory, account_id: str, *, kept: KeptRoles) -> None:
    """Make somebody a member with the roles they had; who is one already keeps theirs."""
    organization, actor = directory.organization, directory.actor
    account = await accounts.get_user_by_id(conn, account_id)
    if directory.managed and not await switching.switch_on(conn, account_id):
        raise ScimRefusal(
            403,
            f"An administrator of the hub has switched the account {account.name} off, "
            "and only one can switch it on again.",
        )
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
        await switching.switch_off(conn, account_id)
    else:
        await tokens.revoke_of_user(
            conn, account_id, reason="organization", organization_id=organization.id
        )
