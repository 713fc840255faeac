"""Rules of resource groups: who may see, change and join them."""

from dataclasses import replace

from hublet.accounts.access import role_of
from hublet.accounts.errors import (
    NotAMember,
    NotInResourceGroup,
    PlanNeeded,
    ResourceGroupInUse,
    ResourceGroupNameTaken,
    ResourceGroupNotFound,
)
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import store as members_store
from hublet.accounts.records import (
    Actor,
    Organization,
    OrganizationPlan,
    ResourceGroupRecord,
    Role,
    User,
)
from hublet.accounts.resource_groups import store
from hublet.core.clock import now
from hublet.core.database import Connection, Reader, UniqueViolation
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish
from hublet.events import (
    ResourceGroupCreated,
    ResourceGroupDeleted,
    ResourceGroupMemberRemoved,
    ResourceGroupMemberSet,
    ResourceGroupUpdated,
)


async def get_organization(
    conn: Reader, name: str, *, user_id: str, needed: Role = Role.admin
) -> Organization:
    """Return the organization when the user has the role, and the organization the plan."""
    organization = await organizations.get_as(conn, name, user_id=user_id, needed=needed)
    if not organization.plan.has_resource_groups:
        raise PlanNeeded("Resource groups", OrganizationPlan.team, organization.name)
    return organization


async def list_visible(
    conn: Reader, organization: Organization, *, user_id: str, after: str, limit: int
) -> list[ResourceGroupRecord]:
    """Return all groups to an administrator, to other members the groups they are in."""
    role = await role_of(conn, organization.id, user_id=user_id)
    member_id = "" if role is Role.admin else user_id
    return await store.list_of(conn, organization.id, member_id=member_id, after=after, limit=limit)


async def get(conn: Reader, organization: Organization, group_id: str) -> ResourceGroupRecord:
    group = await store.find(conn, group_id, organization_id=organization.id)
    if group is None:
        raise ResourceGroupNotFound(group_id)
    return group


async def get_visible(
    conn: Reader, organization: Organization, group_id: str, *, user_id: str
) -> ResourceGroupRecord:
    """Return a group to an administrator of the organization, or to a member of the group."""
    group = await get(conn, organization, group_id)
    if await role_of(conn, organization.id, user_id=user_id, resource_group_id=group.id) is None:
        raise ResourceGroupNotFound(group_id)
    return group


async def role_in(
    conn: Reader, organization: Organization, group_id: str, *, user_id: str
) -> Role | None:
    """Return the role that a user has in a group, which must be one of the organization."""
    group = await get(conn, organization, group_id)
    return await role_of(conn, organization.id, user_id=user_id, resource_group_id=group.id)


async def create(
    conn: Connection, actor: Actor, organization: Organization, *, name: str, description: str
) -> ResourceGroupRecord:
    group = ResourceGroupRecord(
        id=new_object_id(),
        organization_id=organization.id,
        name=name,
        description=description,
        created_at=now(),
    )
    if not await store.add(conn, group):
        raise ResourceGroupNameTaken(name)
    await audit.record(conn, organization.id, actor, "resource-group.create", target=name)
    await publish(
        conn,
        ResourceGroupCreated(
            organization_id=organization.id, resource_group_id=group.id, name=name
        ),
    )
    return group


async def update(
    conn: Connection,
    actor: Actor,
    group: ResourceGroupRecord,
    *,
    name: str | None,
    description: str | None,
) -> ResourceGroupRecord:
    """Change a group; None keeps a value."""
    changed = replace(
        group,
        name=group.name if name is None else name,
        description=group.description if description is None else description,
    )
    if changed == group:
        return group
    try:
        await store.update(conn, changed)
    except UniqueViolation:
        raise ResourceGroupNameTaken(changed.name) from None
    await audit.record(
        conn, group.organization_id, actor, "resource-group.update", target=group.name,
        details={"name": changed.name, "description": changed.description},
    )  # fmt: skip
    await publish(
        conn,
        ResourceGroupUpdated(
            organization_id=group.organization_id, resource_group_id=group.id, name=changed.name
        ),
    )
    return changed


async def delete(conn: Connection, actor: Actor, group: ResourceGroupRecord) -> None:
    if await store.is_in_use(conn, group.id):
        raise ResourceGroupInUse(group.name)
    await store.remove(conn, group.id)
    await audit.record(
        conn, group.organization_id, actor, "resource-group.delete", target=group.name
    )
    await publish(
        conn,
        ResourceGroupDeleted(
            organization_id=group.organization_id, resource_group_id=group.id, name=group.name
        ),
    )


async def set_member(
    conn: Connection,
    actor: Actor,
    organization: Organization,
    group: ResourceGroupRecord,
    user: User,
    role: Role,
) -> None:
    """Add a member of the organization to one of its groups, or change the role there."""
    # A user who is being removed from the organization must not stay in the group.
    await organizations.lock_membership(conn, organization, user)
    if await role_of(conn, organization.id, user_id=user.id) is None:
        raise NotAMember(user.name, organization.name)
    before = await members_store.group_role_of(conn, group.id, user_id=user.id)
    if before is role:
        return
    await members_store.set_group_member(conn, group.id, user_id=user.id, role=role)
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


async def remove_member(
    conn: Connection, actor: Actor, group: ResourceGroupRecord, user: User
) -> None:
    if await members_store.group_role_of(conn, group.id, user_id=user.id) is None:
        raise NotInResourceGroup(user.name, group.name)
    await members_store.remove_group_member(conn, group.id, user_id=user.id)
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
