"""HTTP routes for hub administrators: users, invitations, organizations and parked tasks."""

from fastapi import Request
from pydantic import MISSING

from hublet.accounts import invitations
from hublet.accounts.administration_schemas import (
    AddOrganization,
    AddUser,
    AdministeredOrganization,
    AdministeredUser,
    ParkedTaskCard,
    RetriedTasks,
    RetryTasks,
    SetPassword,
    SetPlan,
    UpdateUser,
)
from hublet.accounts.organizations import service, store
from hublet.accounts.organizations.schemas import (
    CreatedInvitation,
    InviteToHub,
    OpenInvitation,
    SetMember,
)
from hublet.accounts.records import Member
from hublet.accounts.schemas import MemberCard
from hublet.accounts.users import service as users_service
from hublet.accounts.users import store as users_store
from hublet.core import queue
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.schema import Done
from hublet.tokens.auth import Administrator, actor_of

users_router = Router(prefix="/api/admin/users", tags=["administration"])


@users_router.get("", responses=PAGED_RESPONSES)
async def list_users(
    conn: ReadConn, _caller: Administrator, page: PageQuery
) -> list[AdministeredUser]:
    """List all users of the hub, oldest first, page by page."""
    users = await users_store.list_all(conn, after=page.after, limit=page.reach)
    return [AdministeredUser.of(u) for u in page.cut(users, position=lambda user: user.id)]


@users_router.post("", responses={409: {"description": "The name or the e-mail address is taken."}})
async def add_user(conn: Conn, _caller: Administrator, body: AddUser) -> AdministeredUser:
    """Create an account; its e-mail address counts as verified, and a password is optional."""
    user = await users_service.create_user(
        conn,
        body.name,
        fullname=None if body.fullname is MISSING else body.fullname,
        email=None if body.email is MISSING else body.email,
        password=None if body.password is MISSING else body.password,
        is_admin=body.isAdmin,
    )
    return AdministeredUser.of(user)


@users_router.patch(
    "/{name}",
    responses={409: {"description": "The hub would be left without an administrator."}},
)
async def update_user(
    conn: Conn, _caller: Administrator, name: str, body: UpdateUser
) -> AdministeredUser:
    """Disable or enable an account, make its owner a hub administrator or none.

    The tokens of a disabled user fail in every process within a second.
    """
    user = await users_service.update_as_administrator(
        conn,
        await users_service.get_user(conn, name),
        disabled=None if body.disabled is MISSING else body.disabled,
        is_admin=None if body.isAdmin is MISSING else body.isAdmin,
    )
    return AdministeredUser.of(user)


@users_router.put("/{name}/password")
async def set_user_password(
    conn: Conn, _caller: Administrator, name: str, body: SetPassword
) -> Done:
    """Set a user's password."""
    user = await users_service.get_user(conn, name)
    await users_service.set_password(conn, user, body.password)
    return Done()


invitations_router = Router(prefix="/api/admin/invitations", tags=["administration"])


@invitations_router.get("")
async def list_invitations_to_hub(conn: ReadConn, _caller: Administrator) -> list[OpenInvitation]:
    """List the invitations to the hub that nobody has accepted yet, newest first."""
    return [OpenInvitation.of(each) for each in await invitations.list_of(conn, None)]


@invitations_router.post("")
async def invite_to_hub(
    request: Request, conn: Conn, caller: Administrator, body: InviteToHub
) -> CreatedInvitation:
    """Invite somebody to create an account, by a link that works once and for 7 days.

    It works whatever `login.sign_up` says; this answer alone shows it.
    """
    invitation, link = await invitations.create(
        conn,
        actor_of(request, caller),
        organization=None,
        role=None,
        email=None if body.email is MISSING else body.email,
    )
    return CreatedInvitation(invitation=OpenInvitation.of(invitation), link=link)


@invitations_router.delete("/{invitation_id}")
async def revoke_invitation_to_hub(
    request: Request, conn: Conn, caller: Administrator, invitation_id: str
) -> Done:
    """Revoke an invitation to the hub; its link does not work any more."""
    await invitations.revoke(conn, actor_of(request, caller), invitation_id, organization=None)
    return Done()


organizations_router = Router(prefix="/api/admin/organizations", tags=["administration"])


@organizations_router.get("", responses=PAGED_RESPONSES)
async def list_organizations(
    conn: ReadConn, _caller: Administrator, page: PageQuery
) -> list[AdministeredOrganization]:
    """List all organizations of the hub, oldest first, page by page."""
    organizations = await store.list_all(conn, after=page.after, limit=page.reach)
    return [
        AdministeredOrganization.of(organization)
        for organization in page.cut(organizations, position=lambda each: each.id)
    ]


@organizations_router.post("", responses={409: {"description": "The name is taken."}})
async def add_organization(
    request: Request, conn: Conn, caller: Administrator, body: AddOrganization
) -> AdministeredOrganization:
    """Create an organization on any plan; it has no members yet."""
    organization = await service.create(
        conn,
        actor_of(request, caller),
        body.name,
        fullname=None if body.fullname is MISSING else body.fullname,
        plan=body.plan,
    )
    return AdministeredOrganization.of(organization)


@organizations_router.put("/{name}/plan")
async def set_organization_plan(
    request: Request, conn: Conn, caller: Administrator, name: str, body: SetPlan
) -> AdministeredOrganization:
    """Move an organization to another plan."""
    organization = await service.get(conn, name)
    actor = actor_of(request, caller)
    return AdministeredOrganization.of(await service.set_plan(conn, actor, organization, body.plan))


@organizations_router.put(
    "/{name}/members/{user}",
    responses={409: {"description": "The organization would be left without an administrator."}},
)
async def set_member_as_administrator(
    request: Request, conn: Conn, caller: Administrator, name: str, user: str, body: SetMember
) -> MemberCard:
    """Add a member to any organization, or change the role of one."""
    organization = await service.get(conn, name)
    member = await users_service.get_user(conn, user)
    await service.set_member(conn, actor_of(request, caller), organization, member, body.role)
    membership = Member(user=member, role=body.role)
    return MemberCard.of_member(membership, base_url=conn.hub.settings.base_url)


@organizations_router.delete(
    "/{name}/members/{user}",
    responses={409: {"description": "The organization would be left without an administrator."}},
)
async def remove_member_as_administrator(
    request: Request, conn: Conn, caller: Administrator, name: str, user: str
) -> Done:
    """Remove a member from any organization and its resource groups."""
    organization = await service.get(conn, name)
    member = await users_service.get_user(conn, user)
    await service.remove_member(conn, actor_of(request, caller), organization, member)
    return Done()


tasks_router = Router(prefix="/api/admin/tasks", tags=["administration"])


@tasks_router.get("")
async def list_parked_tasks(conn: ReadConn, _caller: Administrator) -> list[ParkedTaskCard]:
    """List the first hundred tasks that failed too often and were parked, oldest first."""
    return [ParkedTaskCard.of(task) for task in await queue.list_parked(conn)]


@tasks_router.post("/retry")
async def retry_parked_tasks(conn: Conn, _caller: Administrator, body: RetryTasks) -> RetriedTasks:
    """Give one parked task, or all of them, a fresh start; tell how many there were."""
    task_id = None if body.id is MISSING else body.id
    return RetriedTasks(count=await queue.retry_parked(conn, task_id=task_id))
