"""HTTP routes for an organization's networks, e-mail domains and requests to join it."""

from fastapi import Request
from pydantic import MISSING

from hublet.accounts.organizations import (
    join_requests,
    join_requests_store,
    security,
    service,
)
from hublet.accounts.organizations.schemas import (
    DeclineJoinRequest,
    JoinStatus,
    ListedEmailDomain,
    NetworkSettings,
    OpenJoinRequest,
    RequestToJoin,
    SetEmailDomain,
    SetMember,
    UpdateNetworkSettings,
)
from hublet.accounts.records import Role
from hublet.accounts.users import service as accounts
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner, actor_of

networks_router = Router(
    prefix="/api/organizations/{name}/settings/network-security", tags=["orgs"]
)


@networks_router.get("")
async def get_network_security(conn: ReadConn, caller: AccountOwner, name: str) -> NetworkSettings:
    """Show from where the members of an organization reach it."""
    organization = await service.get_administered(conn, name, user_id=caller.user_id)
    return NetworkSettings.of(await security.get(conn, organization))


@networks_router.patch(
    "", responses={409: {"description": "The caller's own address is in none of the ranges."}}
)
async def update_network_security(
    request: Request, conn: Conn, caller: AccountOwner, name: str, body: UpdateNetworkSettings
) -> NetworkSettings:
    """Change from where the members of an organization reach it; what is left out stays.

    With `enforceIpRestriction` rights of members count for requests from `ipRanges` alone, by tokens,
    git, the registry, SSH and browsers. Exempt are tokens of service accounts with
    `skipNetworkSecurity`.
    """
    organization = await service.get_administered(conn, name, user_id=caller.user_id)
    changed = await security.update(
        conn,
        actor_of(request, caller),
        organization,
        ip_ranges=None if body.ipRanges is MISSING else security.parse_ranges(body.ipRanges),
        is_restricted=None if body.enforceIpRestriction is MISSING else body.enforceIpRestriction,
        needs_token=None if body.enforceAuth is MISSING else body.enforceAuth,
        by_operator=caller.is_admin,
    )
    return NetworkSettings.of(changed)


domains_router = Router(prefix="/api/organizations/{name}/settings/email-domains", tags=["orgs"])


@domains_router.get("")
async def list_email_domains(
    conn: ReadConn, caller: AccountOwner, name: str
) -> list[ListedEmailDomain]:
    """List the domains whose people may join an organization by themselves."""
    organization = await service.get_administered(conn, name, user_id=caller.user_id)
    return [
        ListedEmailDomain.of(each) for each in await join_requests.list_domains(conn, organization)
    ]


@domains_router.put("/{domain}")
async def set_email_domain(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    name: str,
    domain: str,
    body: SetEmailDomain,
) -> list[ListedEmailDomain]:
    """Let people with a verified address of a domain join an organization, with this role."""
    organization = await service.get_administered(conn, name, user_id=caller.user_id)
    actor = actor_of(request, caller)
    await join_requests.set_domain(conn, actor, organization, domain, Role(body.role))
    return [
        ListedEmailDomain.of(each) for each in await join_requests.list_domains(conn, organization)
    ]


@domains_router.delete("/{domain}")
async def remove_email_domain(
    request: Request, conn: Conn, caller: AccountOwner, name: str, domain: str
) -> Done:
    """Stop people of a domain from joining by themselves; who joined stays."""
    organization = await service.get_administered(conn, name, user_id=caller.user_id)
    await join_requests.remove_domain(conn, actor_of(request, caller), organization, domain)
    return Done()


join_router = Router(prefix="/api/organizations/{name}/join-requests", tags=["orgs"])

_NO_MESSAGE = RequestToJoin()
_NO_REASON = DeclineJoinRequest()


@join_router.get("")
async def list_join_requests(
    conn: ReadConn, caller: AccountOwner, name: str
) -> list[OpenJoinRequest]:
    """List who asks to join an organization, oldest first, at most 100."""
    organization = await service.get_administered(conn, name, user_id=caller.user_id)
    return [
        OpenJoinRequest.of(each)
        for each in await join_requests_store.list_open(conn, organization.id)
    ]


@join_router.post("", responses={409: {"description": "The caller is a member already."}})
async def request_to_join(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    name: str,
    body: RequestToJoin = _NO_MESSAGE,
) -> JoinStatus:
    """Ask to join an organization; who has a verified address of its domains is a member at once."""
    organization = await service.get(conn, name)
    person = await accounts.get_user_by_id(conn, caller.user_id)
    actor = actor_of(request, caller)
    joined = await join_requests.create(conn, actor, organization, person, body.message.strip())
    return JoinStatus(status="member" if joined else "pending")


@join_router.delete("")
async def withdraw_join_request(
    request: Request, conn: Conn, caller: AccountOwner, name: str
) -> Done:
    """Take one's own request back; doing it again changes nothing."""
    organization = await service.get(conn, name)
    person = await accounts.get_user_by_id(conn, caller.user_id)
    await join_requests.withdraw(conn, actor_of(request, caller), organization, person)
    return Done()


@join_router.post("/{user}/accept")
async def accept_join_request(
    request: Request, conn: Conn, caller: AccountOwner, name: str, user: str, body: SetMember
) -> Done:
    """Make who asks a member with this role."""
    organization = await service.get_administered(conn, name, user_id=caller.user_id)
    person = await accounts.get_visible_user(conn, user, to_administrator=False)
    actor = actor_of(request, caller)
    await join_requests.accept(conn, actor, organization, person, body.role)
    return Done()


@join_router.post("/{user}/decline")
async def decline_join_request(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    name: str,
    user: str,
    body: DeclineJoinRequest = _NO_REASON,
) -> Done:
    """Decline a request; who asked is told so, with the reason if there is one."""
    organization = await service.get_administered(conn, name, user_id=caller.user_id)
    person = await accounts.get_visible_user(conn, user, to_administrator=False)
    actor = actor_of(request, caller)
    await join_requests.decline(conn, actor, organization, person, body.reason.strip())
    return Done()
