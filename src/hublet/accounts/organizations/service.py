"""Rules of organizations: who belongs to them, with which role, on which plan."""

from dataclasses import replace

from hublet.accounts.errors import (
    LastAdministrator,
    NameTaken,
    NotAMember,
    NotForServiceAccounts,
    OrganizationNotFound,
    RoleNeeded,
)
from hublet.accounts.names import check_fullname, check_imported_name, check_name
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import join_requests_store, store
from hublet.accounts.records import (
    Actor,
    DefaultVisibility,
    GroupMembership,
    Organization,
    OrganizationPlan,
    Role,
    User,
    UserType,
)
from hublet.accounts.users import store as users
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.database.engine import CREDENTIALS_CHANNEL
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish
from hublet.events import (
    MemberAdded,
    MemberRemoved,
    MemberRoleChanged,
    OrganizationCreated,
    OrganizationPlanChanged,
    OrganizationUpdated,
    ResourceGroupMemberRemoved,
    ResourceGroupMemberSet,
)


async def create(  # noqa: PLR0913 - all that an organization begins with
    conn: Connection,
    actor: Actor,
    name: str,
    *,
    fullname: str | None = None,
    plan: OrganizationPlan = OrganizationPlan.free,
    owner: User | None = None,
    any_name: bool = False,
) -> Organization:
    """Create an organization; its owner, if there is one yet, becomes its first administrator."""
    (check_imported_name if any_name else check_name)(name)
    check_fullname(fullname or name)
    organization = Organization(
        id=new_object_id(), name=name, fullname=fullname or name, plan=plan, created_at=now()
    )
    if not await users.reserve_name(conn, name, account_id=organization.id, type="org"):
        raise NameTaken(name)
    await store.add(conn, organization)
    await audit.record(conn, organization.id, actor, "organization.create", target=name)
    await publish(conn, OrganizationCreated(organization_id=organization.id, name=name))
    if owner is not None:
        await set_member(conn, actor, organization, owner, Role.admin)
    return organization


async def get(conn: Reader, name: str) -> Organization:
    organization = await store.find_by_name(conn, name)
    if organization is None:
        raise OrganizationNotFound(name)
    return organization


async def get_as(conn: Reader, name: str, *, user_id: str, needed: Role) -> Organization:
    """Return the organization when the user has at least this role in it."""
    found = await users.find_organization_with_role(conn, name, user_id=user_id)
    if found is None:
        raise OrganizationNotFound(name)
    organization, role = found
    if role is None or not role.covers(needed):
        raise RoleNeeded(needed, name)
    return organization


async def get_administered(conn: Reader, name: str, *, user_id: str) -> Organization:
    """Return the organization when the user is an administrator of it."""
    return await get_as(conn, name, user_id=user_id, needed=Role.admin)


async def is_member(conn: Reader, organization: Organization, *, user_id: str | None) -> bool:
    return user_id is not None and (
        await store.role_of(conn, organization.id, user_id=user_id) is not None
    )


async def set_fullname(
    conn: Connection, actor: Actor, organization: Organization, fullname: str
) -> Organization:
    if fullname == organization.fullname:
        return organization
    check_fullname(fullname)
    await store.set_fullname(conn, organization.id, fullname)
    await audit.record(
        conn, organization.id, actor, "organization.update", target=organization.name,
        details={"fullname": fullname},
    )  # fmt: skip
    await publish(conn, OrganizationUpdated(organization_id=organization.id))
    return replace(organization, fullname=fullname)


async def set_plan(
    conn: Connection, actor: Actor, organization: Organization, plan: OrganizationPlan
) -> Organization:
    if plan is organization.plan:
        return organization
    await store.set_plan(conn, organization.id, plan)
    await audit.record(
        conn, organization.id, actor, "organization.plan", target=organization.name,
        details={"from": organization.plan, "to": plan},
    )  # fmt: skip
    await publish(conn, OrganizationPlanChanged(organization_id=organization.id, plan=plan))
    return replace(organization, plan=plan)


async def set_default_visibility(
    conn: Connection, actor: Actor, organization: Organization, visibility: DefaultVisibility
) -> Organization:
    """Say who sees new repositories whose creator does not say; those of before stay as they are."""
    if visibility is organization.default_visibility:
        return organization
    await store.set_default_visibility(conn, organization.id, visibility)
    await audit.record(
        conn, organization.id, actor, "organization.update", target=organization.name,
        details={"defaultVisibility": visibility},
    )  # fmt: skip
    return replace(organization, default_visibility=visibility)


async def set_member(
    conn: Connection, actor: Actor, organization: Organization, user: User, role: Role
) -> None:
    """Add a member, or change the role of one."""
    if user.type is UserType.service and user.organization_id != organization.id:
        raise NotForServiceAccounts(user.name, "it belongs to no organization but its own")
    await lock_membership(conn, organization, user)
    before = await store.role_of(conn, organization.id, user_id=user.id)
    if before is role:
        return
    if before is None:
        await join_requests_store.remove(conn, organization.id, user_id=user.id)
        await add_member(conn, actor, organization, user, role)
        return
    if before is Role.admin:
        await _check_other_administrator(conn, organization, except_for=user)
    await store.set_member(conn, organization.id, user_id=user.id, role=role)
    await audit.record(
        conn, organization.id, actor, "member.role", target=user.name, details={"role": role}
    )
    member = {"organization_id": organization.id, "user_id": user.id, "role": role}
    await publish(conn, MemberRoleChanged(**member))


async def add_member(
    conn: Connection, actor: Actor, organization: Organization, user: User, role: Role
) -> None:
    """Add a member: of an account that this transaction created, or under the lock of its membership."""
    await store.set_member(conn, organization.id, user_id=user.id, role=role)
    await audit.record(
        conn, organization.id, actor, "member.add", target=user.name, details={"role": role}
    )
    joined = MemberAdded(
        organization_id=organization.id, user_id=user.id, role=role, actor_id=actor.id
    )
    await publish(conn, joined)
    await _join_resource_groups(conn, actor, organization, user)


async def _join_resource_groups(
    conn: Connection, actor: Actor, organization: Organization, user: User
) -> None:
    """Add a new member to the groups that all members join."""
    for group in await store.list_groups_to_join(conn, organization.id):
        await add_to_resource_group(conn, actor, organization, group, user)


async def add_to_resource_group(
    conn: Connection, actor: Actor, organization: Organization, group: GroupMembership, user: User
) -> None:
    """Give a member a role in a resource group, which the caller has checked."""
    await store.set_group_member(conn, group.group_id, user_id=user.id, role=group.role)
    await audit.record(
        conn, organization.id, actor, "resource-group-member.add", target=user.name,
        details={"resource_group": group.group_name, "role": group.role, "by": "auto-join"},
    )  # fmt: skip
    await publish(
        conn,
        ResourceGroupMemberSet(
            organization_id=organization.id,
            resource_group_id=group.group_id,
            user_id=user.id,
            role=group.role,
        ),
    )


async def remove_member(
    conn: Connection, actor: Actor, organization: Organization, user: User
) -> None:
    """Remove a member, from the resource groups of the organization too."""
    await lock_membership(conn, organization, user)
    role = await store.role_of(conn, organization.id, user_id=user.id)
    if role is None:
        raise NotAMember(user.name, organization.name)
    if user.type is UserType.service:
        raise NotForServiceAccounts(user.name, "delete the account, not its membership")
    if role is Role.admin:
        await _check_other_administrator(conn, organization, except_for=user)
    groups = await _leave_resource_groups(conn, organization, user)
    await store.remove_member(conn, organization.id, user_id=user.id)
    await audit.record(
        conn, organization.id, actor, "member.remove", target=user.name,
        details={"resource_groups": groups} if groups else None,
    )  # fmt: skip
    # Credentials that are confined to the organization end with the membership.
    conn.wake(CREDENTIALS_CHANNEL)
    await publish(conn, MemberRemoved(organization_id=organization.id, user_id=user.id))


async def _leave_resource_groups(
    conn: Connection, organization: Organization, user: User
) -> list[str]:
    """Remove a user from every group of the organization; return the names of the groups."""
    memberships = await store.list_groups_of_member(conn, organization.id, user_id=user.id)
    for membership in memberships:
        await store.remove_group_member(conn, membership.group_id, user_id=user.id)
        await publish(
            conn,
            ResourceGroupMemberRemoved(
                organization_id=organization.id,
                resource_group_id=membership.group_id,
                user_id=user.id,
            ),
        )
    return [membership.group_name for membership in memberships]


async def lock_membership(conn: Connection, organization: Organization, user: User) -> None:
    """Lock the membership of a user, of whatever role or none, until the transaction ends."""
    await conn.lock(f"membership of {user.id} in {organization.id}")


async def _check_other_administrator(
    conn: Connection, organization: Organization, *, except_for: User
) -> None:
    """Refuse to leave the organization without an administrator.

    The lock is for two administrators who remove each other at the same moment.
    """
    await conn.lock(f"administrators of {organization.id}")
    if not await store.count_other_admins(conn, organization.id, user_id=except_for.id):
        raise LastAdministrator(organization.name)
