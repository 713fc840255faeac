"""HTTP routes for the resource groups of an organization and their members."""

from fastapi import Request
from pydantic import MISSING

from hublet.accounts.errors import NotInResourceGroup
from hublet.accounts.organizations import store as members
from hublet.accounts.organizations.schemas import SetMember
from hublet.accounts.records import Member, ResourceGroupRecord, Role
from hublet.accounts.resource_groups import service, store
from hublet.accounts.resource_groups.schemas import (
    AddGroupUsers,
    AutoJoinOn,
    CreateResourceGroup,
    GroupContent,
    GroupSettings,
    ResourceGroup,
    ResourceGroupDetails,
    SetGroupRole,
    UpdateResourceGroup,
)
from hublet.accounts.schemas import MemberCard
from hublet.accounts.users import service as accounts
from hublet.core.database import Reader
from hublet.core.errors import InvalidRequest
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner, actor_of

_MOST_RESOURCES = 1000

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


@router.post(
    "/{group_id}/settings", responses={409: {"description": "SCIM gives the group its members."}}
)
async def set_resource_group_settings(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    organization: str,
    group_id: str,
    body: GroupSettings,
) -> GroupContent:
    """Let all members of the organization join a resource group, those of today at once, or not."""
    owner = await service.get_organization(conn, organization, user_id=caller.user_id)
    group = await service.get(conn, owner, group_id)
    join = body.autoJoin
    role = Role(join.role) if isinstance(join, AutoJoinOn) else None
    scope = join.scope if isinstance(join, AutoJoinOn) else None
    actor = actor_of(request, caller)
    group = await service.set_auto_join(conn, actor, owner, group, role=role, scope=scope)
    return await _content(conn, group)


@router.post("/{group_id}/users")
async def add_resource_group_users(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    organization: str,
    group_id: str,
    body: AddGroupUsers,
) -> GroupContent:
    """Add members of the organization to a resource group; all of them, or none."""
    owner = await service.get_organization(conn, organization, user_id=caller.user_id)
    group = await service.get(conn, owner, group_id)
    for index, new in enumerate(body.users):
        name = new.user if new.user is not MISSING else new.name
        if name is MISSING:
            raise InvalidRequest(f"users[{index}].user: name the member to add.")
        member = await accounts.get_visible_user(conn, name, to_administrator=False)
        actor = actor_of(request, caller)
        await service.set_member(conn, actor, owner, group, member, Role(new.role))
    return await _content(conn, group)


@router.patch("/{group_id}/users/{user}")
async def change_resource_group_user(  # noqa: PLR0913, PLR0917 - the path has three names
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    organization: str,
    group_id: str,
    user: str,
    body: SetGroupRole,
) -> GroupContent:
    """Change the role of a member of a resource group."""
    owner = await service.get_organization(conn, organization, user_id=caller.user_id)
    group = await service.get(conn, owner, group_id)
    member = await accounts.get_visible_user(conn, user, to_administrator=False)
    if await members.group_role_of(conn, group.id, user_id=member.id) is None:
        raise NotInResourceGroup(member.name, group.name)
    actor = actor_of(request, caller)
    await service.set_member(conn, actor, owner, group, member, Role(body.role))
    return await _content(conn, group)


@router.delete("/{group_id}/users/{user}")
async def remove_resource_group_user(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    organization: str,
    group_id: str,
    user: str,
) -> GroupContent:
    """Remove a member from a resource group; the place in the organization stays."""
    owner = await service.get_organization(conn, organization, user_id=caller.user_id)
    group = await service.get(conn, owner, group_id)
    member = await accounts.get_user(conn, user)
    await service.remove_member(conn, actor_of(request, caller), group, member)
    return await _content(conn, group)


async def _content(conn: Reader, group: ResourceGroupRecord) -> GroupContent:
    return GroupContent.of(
        group,
        await members.list_group_members(conn, group.id),
        [dict(row) for row in await store.list_repos(conn, group.id, limit=_MOST_RESOURCES)],
        base_url=conn.hub.settings.base_url,
    )
