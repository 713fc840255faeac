"""HTTP routes for organizations, their members, invitations, audit log and service accounts."""

from typing import Annotated

from fastapi import Query, Request
from pydantic import MISSING

from hublet.accounts import invitations
from hublet.accounts.errors import NoSuchRole, NotAMember, RoleNeeded
from hublet.accounts.names import name_key
from hublet.accounts.organizations import service, service_accounts, store
from hublet.accounts.organizations.schemas import (
    CreatedInvitation,
    CreateOrganization,
    CreateServiceAccount,
    InviteToOrganization,
    ListedMember,
    OpenInvitation,
    OrganizationOverview,
    ServiceAccount,
    SetMember,
    SetMemberRole,
    UpdateOrganization,
)
from hublet.accounts.records import DefaultVisibility, Member, Organization, Role
from hublet.accounts.resource_groups import service as resource_groups
from hublet.accounts.schemas import MemberCard, UserCard
from hublet.accounts.users import service as accounts
from hublet.accounts.users import store as accounts_store
from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, MemberPage, PageQuery
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
    organization = await service.get_administered(conn, name, user_id=caller.user_id)
    actor = actor_of(request, caller)
    if body.fullname is not MISSING:
        organization = await service.set_fullname(conn, actor, organization, body.fullname)
    if body.defaultVisibility is not MISSING:
        visibility = DefaultVisibility(body.defaultVisibility)
        organization = await service.set_default_visibility(conn, actor, organization, visibility)
    return await _overview(conn, organization, viewer_id=caller.user_id)


@router.get("/{name}/members", responses=PAGED_RESPONSES)
async def list_organization_members(
    conn: ReadConn,
    caller: MaybeCaller,
    name: str,
    page: MemberPage,
    search: Annotated[str, Query(max_length=200, description="A part of a name.")] = "",
    email: Annotated[
        str, Query(max_length=320, description="A verified address; for administrators only.")
    ] = "",
) -> list[ListedMember]:
    """List who belongs to an organization, page by page; administrators see more of each."""
    organization = await service.get(conn, name)
    is_administrator = (
        caller is not None
        and caller.token.role == "write"
        and (await store.role_of(conn, organization.id, user_id=caller.user_id) is Role.admin)
    )
    if email and not is_administrator:
        # Whose address it is would be told to everybody.
        raise RoleNeeded(Role.admin, organization.name)
    found = await store.list_members(
        conn, organization.id, after=page.after, limit=page.reach, search=search, email=email
    )
    members = page.cut(found, position=lambda member: member.user.id)
    return await _listed(conn, organization, members, with_details=is_administrator)


async def _listed(
    conn: Reader, organization: Organization, members: list[Member], *, with_details: bool
) -> list[ListedMember]:
    base_url = conn.hub.settings.base_url
    if not with_details:
        return [ListedMember.of_member(member, base_url=base_url) for member in members]
    ids = [member.user.id for member in members]
    groups = await store.list_groups_of_members(conn, organization.id, ids)
    addresses = await store.list_primary_addresses(conn, ids)
    return [
        ListedMember.with_details(
            member,
            groups.get(member.user.id, []),
            addresses.get(member.user.id),
            base_url=base_url,
        )
        for member in members
    ]


@router.put(
    "/{name}/members/{user}/role",
    responses={409: {"description": "The organization would be left without an administrator."}},
)
async def set_organization_member_role(
    request: Request, conn: Conn, caller: AccountOwner, name: str, user: str, body: SetMemberRole
) -> MemberCard:
    """Change the role of a member, and those in resource groups that the body names.

    `no_access` in a resource group removes the member from it.
    """
    organization = await service.get_administered(conn, name, user_id=caller.user_id)
    member = await accounts.get_visible_user(conn, user, to_administrator=False)
    if not await service.is_member(conn, organization, user_id=member.id):
        raise NotAMember(member.name, organization.name)
    if body.role == "no_access":
        raise NoSuchRole(
            "role: every member of an organization may read here; remove the member instead."
        )
    actor = actor_of(request, caller)
    await service.set_member(conn, actor, organization, member, Role(body.role))
    if body.resourceGroups is not MISSING:
        roles = {
            each.id.lower(): None if each.role == "no_access" else Role(each.role)
            for each in body.resourceGroups
        }
        await resource_groups.set_roles(conn, actor, organization, member, roles)
    membership = Member(user=member, role=Role(body.role))
    return MemberCard.of_member(membership, base_url=conn.hub.settings.base_url)


@router.put(
    "/{name}/members/{user}",
    responses={409: {"description": "The organization would be left without an administrator."}},
)
async def set_organization_member(
    request: Request, conn: Conn, caller: AccountOwner, name: str, user: str, body: SetMember
) -> MemberCard:
    """Add a member to an organization, or change the role of one."""
    organization = await service.get_administered(conn, name, user_id=caller.user_id)
    member = await accounts.get_visible_user(conn, user, to_administrator=False)
    await service.set_member(conn, actor_of(request, caller), organization, member, body.role)
    membership = Member(user=member, role=body.role)
    return MemberCard.of_member(membership, base_url=conn.hub.settings.base_url)


@router.delete(
    "/{name}/members/{user}",
    responses={409: {"description": "The organization would be left without an administrator."}},
)
async def remove_organization_member(
    request: Request, conn: Conn, caller: AccountOwner, name: str, user: str
) -> Done:
    """Remove a member from an organization and its resource groups; anybody may leave."""
    leaves = name_key(user) == name_key(caller.user_name)
    organization = await (
        service.get(conn, name)
        if leaves
        else service.get_administered(conn, name, user_id=caller.user_id)
    )
    member = await accounts.get_user(conn, user)
    await service.remove_member(conn, actor_of(request, caller), organization, member)
    return Done()


@router.get("/{name}/followers", responses=PAGED_RESPONSES)
async def list_organization_followers(conn: ReadConn, name: str, page: PageQuery) -> list[UserCard]:
    """List who follows an organization, page by page."""
    organization = await service.get(conn, name)
    followers = await accounts_store.list_followers(
        conn, account_id=organization.id, after=page.after, limit=page.reach
    )
    base_url = conn.hub.settings.base_url
    return [UserCard.of(u, base_url=base_url) for u in page.cut(followers, position=lambda u: u.id)]


@router.post("/{name}/follow")
async def follow_organization(conn: Conn, caller: AccountOwner, name: str) -> Done:
    """Follow an organization; doing it again changes nothing."""
    organization = await service.get(conn, name)
    await accounts.follow(conn, follower_id=caller.user_id, account_id=organization.id)
    return Done()


@router.delete("/{name}/follow")
async def unfollow_organization(conn: Conn, caller: AccountOwner, name: str) -> Done:
    """Stop following an organization; doing it again changes nothing."""
    organization = await service.get(conn, name)
    await accounts.unfollow(conn, follower_id=caller.user_id, account_id=organization.id)
    return Done()


async def _overview(
    conn: Reader, organization: Organization, *, viewer_id: str | None
) -> OrganizationOverview:
    return OrganizationOverview.of(
        organization,
        base_url=conn.hub.settings.base_url,
        members=await store.count_members(conn, organization.id),
        repos=await accounts_store.count_public_repos(conn, organization.id),
        followers=await accounts_store.count_followers(conn, account_id=organization.id),
        is_following=await accounts.is_following(
            conn, viewer_id=viewer_id, account_id=organization.id
        ),
        to_member=await service.is_member(conn, organization, user_id=viewer_id),
    )


invitations_router = Router(prefix="/api/organizations/{name}/invitations", tags=["orgs"])


@invitations_router.get("")
async def list_invitations(conn: ReadConn, caller: AccountOwner, name: str) -> list[OpenInvitation]:
    """List the invitations to an organization that nobody has accepted yet, newest first."""
    organization = await service.get_administered(conn, name, user_id=caller.user_id)
    return [OpenInvitation.of(each) for each in await invitations.list_of(conn, organization)]


@invitations_router.post("")
async def invite(
    request: Request, conn: Conn, caller: AccountOwner, name: str, body: InviteToOrganization
) -> CreatedInvitation:
    """Invite somebody by a link that works once and for 7 days; this answer alone shows it.

    It ends early when whoever made it is no longer an administrator of the organization.
    """
    organization = await service.get_administered(conn, name, user_id=caller.user_id)
    invitation, link = await invitations.create(
        conn,
        actor_of(request, caller),
        organization=organization,
        role=body.role,
        email=None if body.email is MISSING else body.email,
    )
    return CreatedInvitation(invitation=OpenInvitation.of(invitation), link=link)


@invitations_router.delete("/{invitation_id}")
async def revoke_invitation(
    request: Request, conn: Conn, caller: AccountOwner, name: str, invitation_id: str
) -> Done:
    """Revoke an invitation to an organization; its link does not work any more."""
    organization = await service.get_administered(conn, name, user_id=caller.user_id)
    actor = actor_of(request, caller)
    await invitations.revoke(conn, actor, invitation_id, organization=organization)
    return Done()


service_accounts_router = Router(
    prefix="/api/organizations/{organization}/service-accounts", tags=["service-accounts"]
)


@service_accounts_router.get("", responses=PAGED_RESPONSES)
async def list_service_accounts(
    conn: ReadConn, caller: AccountOwner, organization: str, page: PageQuery
) -> list[ServiceAccount]:
    """List the service accounts of an organization, page by page."""
    owner = await service_accounts.get_organization(conn, organization, user_id=caller.user_id)
    accounts = await store.list_service_accounts(
        conn, organization_id=owner.id, after=page.after, limit=page.reach
    )
    return [
        ServiceAccount.of(account)
        for account in page.cut(accounts, position=lambda account: account.user.id)
    ]


@service_accounts_router.post("", responses={409: {"description": "The name is taken."}})
async def create_service_account(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    organization: str,
    body: CreateServiceAccount,
) -> ServiceAccount:
    """Create a service account, a member of the organization with this role."""
    owner = await service_accounts.get_organization(conn, organization, user_id=caller.user_id)
    account = await service_accounts.create(
        conn,
        actor_of(request, caller),
        owner,
        body.name,
        role=body.role,
        fullname=None if body.fullname is MISSING else body.fullname,
    )
    return ServiceAccount.of(account)


@service_accounts_router.get("/{account_id}")
async def get_service_account(
    conn: ReadConn, caller: AccountOwner, organization: str, account_id: str
) -> ServiceAccount:
    """Get one service account of an organization."""
    owner = await service_accounts.get_organization(conn, organization, user_id=caller.user_id)
    return ServiceAccount.of(await service_accounts.get(conn, owner, account_id))


@service_accounts_router.delete("/{account_id}")
async def delete_service_account(
    request: Request, conn: Conn, caller: AccountOwner, organization: str, account_id: str
) -> Done:
    """Delete a service account; its tokens fail within a second, its name stays taken."""
    owner = await service_accounts.get_organization(conn, organization, user_id=caller.user_id)
    account = await service_accounts.get(conn, owner, account_id)
    await service_accounts.delete(conn, actor_of(request, caller), owner, account)
    return Done()
