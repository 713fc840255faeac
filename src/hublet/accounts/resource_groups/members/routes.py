"""HTTP for the members of a resource group."""

from fastapi import Request

from hublet.accounts import service as accounts
from hublet.accounts.organizations.schemas import SetMember
from hublet.accounts.records import Member
from hublet.accounts.resource_groups import service as groups
from hublet.accounts.resource_groups.members import service
from hublet.accounts.schemas import MemberCard
from hublet.core.http import Conn, Router
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner, actor_of

router = Router(
    prefix="/api/organizations/{organization}/resource-groups/{group_id}/members",
    tags=["resource-groups"],
)


@router.put("/{user}")
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
    found = await groups.get_organization(conn, organization, user_id=caller.user_id)
    group = await groups.get(conn, found, group_id)
    member = await accounts.get_visible_user(conn, user, to_administrator=False)
    await service.set_member(conn, actor_of(request, caller), found, group, member, body.role)
    shown = Member(user=member, role=body.role)
    return MemberCard.of_member(shown, base_url=conn.hub.settings.base_url)


@router.delete("/{user}")
async def remove_resource_group_member(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    organization: str,
    group_id: str,
    user: str,
) -> Done:
    """Remove a member from a resource group; the place in the organization stays."""
    found = await groups.get_organization(conn, organization, user_id=caller.user_id)
    group = await groups.get(conn, found, group_id)
    member = await accounts.get_user(conn, user)
    await service.remove_member(conn, actor_of(request, caller), group, member)
    return Done()
