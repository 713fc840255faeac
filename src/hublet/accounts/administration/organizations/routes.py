"""HTTP for organizations as a hub administrator manages them."""

from fastapi import Request
from pydantic import MISSING

from hublet.accounts import service as accounts
from hublet.accounts.administration.organizations.schemas import (
    AddOrganization,
    AdministeredOrganization,
    SetPlan,
)
from hublet.accounts.organizations import service, store
from hublet.accounts.organizations.schemas import SetMember
from hublet.accounts.records import Member
from hublet.accounts.schemas import MemberCard
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import LINKED, AskedPage
from hublet.core.schema import Done
from hublet.tokens.auth import Administrator, actor_of

router = Router(prefix="/api/admin/organizations", tags=["administration"])


@router.get("", responses=LINKED)
async def list_organizations(
    conn: ReadConn, _caller: Administrator, page: AskedPage
) -> list[AdministeredOrganization]:
    """List all organizations of the hub, oldest first, page by page."""
    found = await store.list_all(conn, after=page.after, limit=page.reach)
    shown = page.cut(found, position=lambda organization: organization.id)
    return [AdministeredOrganization.of(organization) for organization in shown]


@router.post("", responses={409: {"description": "The name is taken."}})
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


@router.put("/{name}/plan")
async def set_organization_plan(
    request: Request, conn: Conn, caller: Administrator, name: str, body: SetPlan
) -> AdministeredOrganization:
    """Move an organization to another plan."""
    organization = await service.get(conn, name)
    actor = actor_of(request, caller)
    return AdministeredOrganization.of(await service.set_plan(conn, actor, organization, body.plan))


@router.put(
    "/{name}/members/{user}",
    responses={409: {"description": "The organization would be left without an administrator."}},
)
async def set_member_as_administrator(
    request: Request, conn: Conn, caller: Administrator, name: str, user: str, body: SetMember
) -> MemberCard:
    """Add a member to any organization, or change the role of one."""
    organization = await service.get(conn, name)
    member = await accounts.get_user(conn, user)
    await service.set_member(conn, actor_of(request, caller), organization, member, body.role)
    shown = Member(user=member, role=body.role)
    return MemberCard.of_member(shown, base_url=conn.hub.settings.base_url)


@router.delete(
    "/{name}/members/{user}",
    responses={409: {"description": "The organization would be left without an administrator."}},
)
async def remove_member_as_administrator(
    request: Request, conn: Conn, caller: Administrator, name: str, user: str
) -> Done:
    """Remove a member from any organization and its resource groups."""
    organization = await service.get(conn, name)
    member = await accounts.get_user(conn, user)
    await service.remove_member(conn, actor_of(request, caller), organization, member)
    return Done()
