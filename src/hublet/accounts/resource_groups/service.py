"""Rules of resource groups: who may see them, who may change them."""

from dataclasses import replace

from hublet.accounts.audit import service as audit
from hublet.accounts.errors import PlanNeeded
from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import store as organizations_store
from hublet.accounts.records import Actor, Organization, Plan, Role
from hublet.accounts.resource_groups import store
from hublet.accounts.resource_groups.errors import (
    ResourceGroupInUse,
    ResourceGroupNameTaken,
    ResourceGroupNotFound,
)
from hublet.accounts.resource_groups.members import store as members
from hublet.accounts.resource_groups.records import ResourceGroup
from hublet.core.clock import now
from hublet.core.database import Connection, Reader, UniqueViolation
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish
from hublet.events import ResourceGroupCreated, ResourceGroupDeleted, ResourceGroupUpdated


async def get_organization(
    conn: Reader, name: str, *, user_id: str, needed: Role = Role.admin
) -> Organization:
    """Return the organization when the user has the role, and the organization the plan."""
    organization = await organizations.get_as(conn, name, user_id=user_id, needed=needed)
    if not organization.plan.has_resource_groups:
        raise PlanNeeded("Resource groups", Plan.team, organization.name)
    return organization


async def list_visible(
    conn: Reader, organization: Organization, *, user_id: str, after: str, limit: int
) -> list[ResourceGroup]:
    """Return every group to an administrator, to others those that they are in."""
    role = await organizations_store.role_of(conn, organization.id, user_id=user_id)
    member_id = "" if role is Role.admin else user_id
    return await store.list_of(conn, organization.id, member_id=member_id, after=after, limit=limit)


async def get(conn: Reader, organization: Organization, group_id: str) -> ResourceGroup:
    group = await store.find(conn, group_id, organization_id=organization.id)
    if group is None:
        raise ResourceGroupNotFound(group_id)
    return group


async def get_visible(
    conn: Reader, organization: Organization, group_id: str, *, user_id: str
) -> ResourceGroup:
    """Return a group to an administrator, or to somebody who is in it."""
    group = await get(conn, organization, group_id)
    role = await organizations_store.role_of(conn, organization.id, user_id=user_id)
    if role is not Role.admin and await members.role_of(conn, group.id, user_id=user_id) is None:
        raise ResourceGroupNotFound(group_id)
    return group


async def role_in(
    conn: Reader, organization: Organization, group_id: str, *, user_id: str
) -> Role | None:
    """Return the role a user has in a group; the organization's administrators are its own too."""
    group = await get(conn, organization, group_id)
    if await organizations_store.role_of(conn, organization.id, user_id=user_id) is Role.admin:
        return Role.admin
    return await members.role_of(conn, group.id, user_id=user_id)


async def create(
    conn: Connection, actor: Actor, organization: Organization, *, name: str, description: str
) -> ResourceGroup:
    group = ResourceGroup(
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
    group: ResourceGroup,
    *,
    name: str | None,
    description: str | None,
) -> ResourceGroup:
    """Change a group; None keeps what there is."""
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


async def delete(conn: Connection, actor: Actor, group: ResourceGroup) -> None:
    if await store.has_repos(conn, group.id):
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
