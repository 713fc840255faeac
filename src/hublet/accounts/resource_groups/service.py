"""Rules of resource groups: who may see, change and join them."""

from collections.abc import Mapping
from dataclasses import replace

from hublet.accounts.access import role_of
from hublet.accounts.errors import (
    GroupProvisioned,
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
    GroupMembership,
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

_BATCH = 500


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


async def set_roles(
    conn: Connection,
    actor: Actor,
    organization: Organization,
    user: User,
    roles: Mapping[str, Role | None],
) -> None:
    """Set the roles of a member in several groups, by their ids; None removes the member."""
    if roles and not organization.plan.has_resource_groups:
        raise PlanNeeded("Resource groups", OrganizationPlan.team, organization.name)
    for group_id, role in roles.items():
        group = await get(conn, organization, group_id)
        if role is not None:
            await set_member(conn, actor, organization, group, user, role)
        elif await members_store.group_role_of(conn, group.id, user_id=user.id) is not None:
            await remove_member(conn, actor, group, user)


async def set_auto_join(
    conn: Connection,
    actor: Actor,
    organization: Organization,
    group: ResourceGroupRecord,
    *,
    role: Role | None,
    scope: str | None = None,
) -> ResourceGroupRecord:
    """Let all members of the organization join a group with this role, now and later; None: not any more.

    Who is in the group keeps the role there. A group that an identity provider fills has its members
    from there alone.
    """
    if role is not None and await _is_provisioned(conn, organization, group):
        raise GroupProvisioned(group.name)
    await conn.lock(f"auto-join of {organization.id}")
    await store.set_auto_join(conn, group.id, role=role, scope=scope)
    await audit.record(
        conn, organization.id, actor, "resource-group.auto-join", target=group.name,
        details={"enabled": role is not None} | ({"role": role} if role else {}),
    )  # fmt: skip
    if role is not None:
        await _join_all(conn, actor, organization, group, role)
    return replace(group, auto_join_role=role, auto_join_scope=scope)


async def _is_provisioned(
    conn: Reader, organization: Organization, group: ResourceGroupRecord
) -> bool:
    """Tell whether a group of SCIM, such as `acme:research:write`, gives roles in this group."""
    prefix = (organization.name.casefold(), group.name.casefold())
    for name in await store.list_provisioned_names(conn, organization.id):
        parts = [part.strip() for part in name.casefold().split(":")]
        if (parts[0], ":".join(parts[1:-1])) == prefix:
            return True
    return False


async def _join_all(
    conn: Connection,
    actor: Actor,
    organization: Organization,
    group: ResourceGroupRecord,
    role: Role,
) -> None:
    inside = {each.user.id for each in await members_store.list_group_members(conn, group.id)}
    membership = GroupMembership(group_id=group.id, group_name=group.name, role=role)
    after = ""
    while members := await members_store.list_members(
        conn, organization.id, after=after, limit=_BATCH
    ):
        for member in members:
            if member.user.id not in inside:
                await organizations.add_to_resource_group(
                    conn, actor, organization, membership, member.user
                )
        after = members[-1].user.id


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
