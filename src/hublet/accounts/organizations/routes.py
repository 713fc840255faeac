"""HTTP for organizations and their members."""

from fastapi import Request
from pydantic import MISSING

from hublet.accounts import service as accounts
from hublet.accounts import store as accounts_store
from hublet.accounts.follows import service as follows
from hublet.accounts.follows import store as follows_store
from hublet.accounts.names import name_key
from hublet.accounts.organizations import service, store
from hublet.accounts.organizations.schemas import (
    CreateOrganization,
    OrganizationOverview,
    SetMember,
    UpdateOrganization,
)
from hublet.accounts.records import Member, Organization, Role
from hublet.accounts.schemas import MemberCard, UserCard
from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import LINKED, AskedPage
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner, MaybeCaller, actor_of

router = Router(prefix="/api/organizations", tags=["orgs"])


@router.post("", responses={409: {"description": "The name is taken."}})
async def create_organization(
    request: Request, conn: Conn, caller: AccountOwner, body: CreateOrganization
) -> OrganizationOverview:
    """Create an organization on the free plan; the caller becomes its administrator."""
    organization = await service.create(
        conn,
        actor_of(request, caller),
        body.name,
        fullname=None if body.fullname is MISSING else body.fullname,
        owner=await accounts.get_user_by_id(conn, caller.user_id),
    )
    return await _overview(conn, organization, viewer_id=caller.user_id)


@router.get("/{name}/overview")
async def get_organization_overview(
    conn: ReadConn, caller: MaybeCaller, name: str
) -> OrganizationOverview:
    """Show an organization; with a token also whether its holder follows it."""
    organization = await service.get(conn, name)
    return await _overview(conn, organization, viewer_id=caller.user_id if caller else None)


@router.patch("/{name}")
async def update_organization(
    request: Request, conn: Conn, caller: AccountOwner, name: str, body: UpdateOrganization
) -> OrganizationOverview:
    """Change an organization; a field that is left out keeps its value."""
    organization = await _administered(conn, caller, name)
    if body.fullname is not MISSING:
        actor = actor_of(request, caller)
        organization = await service.set_fullname(conn, actor, organization, body.fullname)
    return await _overview(conn, organization, viewer_id=caller.user_id)


@router.get("/{name}/members", responses=LINKED)
async def list_organization_members(conn: ReadConn, name: str, page: AskedPage) -> list[MemberCard]:
    """List who belongs to an organization, page by page."""
    organization = await service.get(conn, name)
    found = await store.list_members(conn, organization.id, after=page.after, limit=page.reach)
    base_url = conn.hub.settings.base_url
    shown = page.cut(found, position=lambda member: member.user.id)
    return [MemberCard.of_member(member, base_url=base_url) for member in shown]


@router.put(
    "/{name}/members/{user}",
    responses={409: {"description": "The organization would be left without an administrator."}},
)
async def set_organization_member(
    request: Request, conn: Conn, caller: AccountOwner, name: str, user: str, body: SetMember
) -> MemberCard:
    """Add a member to an organization, or change the role of one."""
    organization = await _administered(conn, caller, name)
    member = await accounts.get_visible_user(conn, user, to_administrator=False)
    await service.set_member(conn, actor_of(request, caller), organization, member, body.role)
    shown = Member(user=member, role=body.role)
    return MemberCard.of_member(shown, base_url=conn.hub.settings.base_url)


@router.delete(
    "/{name}/members/{user}",
    responses={409: {"description": "The organization would be left without an administrator."}},
)
async def remove_organization_member(
    request: Request, conn: Conn, caller: AccountOwner, name: str, user: str
) -> Done:
    """Remove a member from an organization and its resource groups; anybody may leave."""
    leaves = name_key(user) == name_key(caller.user_name)
    organization = await (service.get(conn, name) if leaves else _administered(conn, caller, name))
    member = await accounts.get_user(conn, user)
    await service.remove_member(conn, actor_of(request, caller), organization, member)
    return Done()


@router.get("/{name}/followers", responses=LINKED)
async def list_organization_followers(conn: ReadConn, name: str, page: AskedPage) -> list[UserCard]:
    """List who follows an organization, page by page."""
    organization = await service.get(conn, name)
    found = await follows_store.list_followers(
        conn, account_id=organization.id, after=page.after, limit=page.reach
    )
    base_url = conn.hub.settings.base_url
    return [UserCard.of(u, base_url=base_url) for u in page.cut(found, position=lambda u: u.id)]


@router.post("/{name}/follow")
async def follow_organization(conn: Conn, caller: AccountOwner, name: str) -> Done:
    """Follow an organization; doing it again changes nothing."""
    organization = await service.get(conn, name)
    await follows.follow(conn, follower_id=caller.user_id, account_id=organization.id)
    return Done()


@router.delete("/{name}/follow")
async def unfollow_organization(conn: Conn, caller: AccountOwner, name: str) -> Done:
    """Stop following an organization; doing it again changes nothing."""
    organization = await service.get(conn, name)
    await follows.unfollow(conn, follower_id=caller.user_id, account_id=organization.id)
    return Done()


async def _administered(conn: Reader, caller: AccountOwner, name: str) -> Organization:
    return await service.get_as(conn, name, user_id=caller.user_id, needed=Role.admin)


async def _overview(
    conn: Reader, organization: Organization, *, viewer_id: str | None
) -> OrganizationOverview:
    return OrganizationOverview.of(
        organization,
        base_url=conn.hub.settings.base_url,
        members=await store.count_members(conn, organization.id),
        repos=await accounts_store.count_public_repos(conn, organization.id),
        followers=await follows_store.count_followers(conn, account_id=organization.id),
        is_following=await follows.is_following(
            conn, viewer_id=viewer_id, account_id=organization.id
        ),
    )
