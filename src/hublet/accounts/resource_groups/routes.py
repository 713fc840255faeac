"""HTTP routes for the resource groups of an organization and their members."""

from fastapi import Request
from pydantic import MISSING

from hublet.accounts.organizations import store as members
from hublet.accounts.organizations.schemas import SetMember
from hublet.accounts.records import Member, Role
from hublet.accounts.resource_groups import service
from hublet.accounts.resource_groups.schemas import (
    CreateResourceGroup,
    ResourceGroup,
    ResourceGroupDetails,
    UpdateResourceGroup,
)
from hublet.accounts.schemas import MemberCard
from hublet.accounts.users import service as accounts
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner, actor_of

router = Router(
    prefix="/api/organizations/{organization}/resource-groups", tags=["resource-groups"]
)


@router.get("", responses=PAGED_RESPONSES)
async def list_resource_groups(
    conn: ReadConn, caller: AccountOwner, organization: str, page: PageQuery
) -> list[ResourceGroup]:
    """List resource groups page by page: an administrator all, others those they are in."""
    owner = await service.get_organization(
        conn, organization, user_id=caller.user_id, needed=Role.read
    )
    groups = await service.list_visible(
        conn, owner, user_id=caller.user_id, after=page.after, limit=page.reach
    )
    return [ResourceGroup.of(g) for g in page.cut(groups, position=lambda group: group.id)]


@router.post("", responses={409: {"description": "The name is taken."}})
async def create_resource_group(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    organization: str,
    body: CreateResourceGroup,
) -> ResourceGroup:
    """Create a resource group; its name is unique in the organization."""
    owner = await service.get_organization(conn, organization, user_id=caller.user_id)
    group = await service.create(
        conn, actor_of(request, caller), owner, name=body.name, description=body.description
    )
    return ResourceGroup.of(group)


@router.get("/{group_id}")
async def get_resource_group(
    conn: ReadConn, caller: AccountOwner, organization: str, group_id: str
) -> ResourceGroupDetails:
    """Get a resource group with its members, as an administrator or one of them."""
    owner = await service.get_organization(
        conn, organization, user_id=caller.user_id, needed=Role.read
    )
    group = await service.get_visible(conn, owner, group_id, user_id=caller.user_id)
    return ResourceGroupDetails.with_members(
        group,
        await members.list_group_members(conn, group.id),
        base_url=conn.hub.settings.base_url,
    )


@router.patch("/{group_id}", responses={409: {"description": "The name is taken."}})
async def update_resource_group(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    organization: str,
    group_id: str,
    body: UpdateResourceGroup,
) -> ResourceGroup:
    """Change a resource group; a field that is left out keeps its value."""
    owner = await service.get_organization(conn, organization, user_id=caller.user_id)
    group = await service.update(
        conn,
        actor_of(request, caller),
        await service.get(conn, owner, group_id),
        name=None if body.name is MISSING else body.name,
        description=None if body.description is MISSING else body.description,
    )
    return ResourceGroup.of(group)


@router.delete("/{group_id}", responses={409: {"description": "It still has repositories."}})
async def delete_resource_group(
    request: Request, conn: Conn, caller: AccountOwner, organization: str, group_id: str
) -> Done:
    """Delete a resource group that has no repositories; its members stay in the organization."""
    owner = await service.get_organization(conn, organization, user_id=caller.user_id)
    group = await service.get(conn, owner, group_id)
    await service.delete(conn, actor_of(request, caller), group)
    return Done()


members_router = Router(
    prefix="/api/organizations/{organization}/resource-groups/{group_id}/members",
    tags=["resource-groups"],
)


@members_router.put("/{user}")
async def set_resource_group_member(  # noqa: PLR0913, PLR0917 - the path has three names
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    organization: str,
    group_id: str,
    user: str,
    body: SetMember,
) -> MemberCard:
    """Add a member of the organization to a resource group, or change the role of one."""
    owner = await service.get_organization(conn, organization, user_id=caller.user_id)
    group = await service.get(conn, owner, group_id)
    member = await accounts.get_visible_user(conn, user, to_administrator=False)
    await service.set_member(conn, actor_of(request, caller), owner, group, member, body.role)
    membership = Member(user=member, role=body.role)
    return MemberCard.of_member(membership, base_url=conn.hub.settings.base_url)


@members_router.delete("/{user}")
async def remove_resource_group_member(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    organization: str,
    group_id: str,
    user: str,
) -> Done:
    """Remove a member from a resource group; the place in the organization stays."""
    owner = await service.get_organization(conn, organization, user_id=caller.user_id)
    group = await service.get(conn, owner, group_id)
    member = await accounts.get_user(conn, user)
    await service.remove_member(conn, actor_of(request, caller), group, member)
    return Done()
