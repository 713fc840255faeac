"""Rules of who may be in a resource group."""

from hublet.accounts.audit import service as audit
from hublet.accounts.errors import NotAMember
from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import store as organizations_store
from hublet.accounts.records import Actor, Organization, Role, User
from hublet.accounts.resource_groups.errors import NotInResourceGroup
from hublet.accounts.resource_groups.members import store
from hublet.accounts.resource_groups.records import ResourceGroup
from hublet.core.database import Connection
from hublet.core.outbox import publish
from hublet.events import ResourceGroupMemberRemoved, ResourceGroupMemberSet


async def set_member(
    conn: Connection,
    actor: Actor,
    organization: Organization,
    group: ResourceGroup,
    user: User,
    role: Role,
) -> None:
    """Add a member of the organization to one of its groups, or change the role there."""
    # Somebody who is being removed from the organization must not stay in the group.
    await organizations.hold_membership(conn, organization, user)
    if await organizations_store.role_of(conn, organization.id, user_id=user.id) is None:
        raise NotAMember(user.name, organization.name)
    before = await store.role_of(conn, group.id, user_id=user.id)
    if before is role:
        return
    await store.set_member(conn, group.id, user_id=user.id, role=role)
    action = "add" if before is None else "role"
    await audit.record(
        conn, organization.id, actor, f"resource-group-member.{action}", target=user.name,
        details={"resource_group": group.name, "role": role},
    )  # fmt: skip
    await publish(
        conn,
        ResourceGroupMemberSet(
            organization_id=organization.id, resource_group_id=group.id, user_id=user.id, role=role
        ),
    )


async def remove_member(conn: Connection, actor: Actor, group: ResourceGroup, user: User) -> None:
    if await store.role_of(conn, group.id, user_id=user.id) is None:
        raise NotInResourceGroup(user.name, group.name)
    await store.remove_member(conn, group.id, user_id=user.id)
    await audit.record(
        conn, group.organization_id, actor, "resource-group-member.remove", target=user.name,
        details={"resource_group": group.name},
    )  # fmt: skip
    await publish(
        conn,
        ResourceGroupMemberRemoved(
            organization_id=group.organization_id, resource_group_id=group.id, user_id=user.id
        ),
    )
