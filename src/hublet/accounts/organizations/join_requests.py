"""Join requests: people ask to join an organization, and its administrators decide.

People with a verified address of one of its e-mail domains need no decision.
"""

import re

from hublet.accounts.errors import (
    AlreadyMember,
    EmailDomainNotFound,
    InvalidEmailDomain,
    InvalidJoinRequest,
    JoinRequestNotFound,
    NotForServiceAccounts,
)
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import join_requests_store, security_store, store
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import (
    Actor,
    EmailDomain,
    JoinRequest,
    Organization,
    Role,
    User,
    UserType,
)
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish
from hublet.events import JoinRequestDeclined, JoinRequested

# Of what somebody writes who asks, and of the reason for which a request is declined.
MAX_MESSAGE = 500
MAX_DOMAINS = 50
_DOMAIN = re.compile(
    r"(?=.{4,253}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+"
)


async def create(
    conn: Connection, actor: Actor, organization: Organization, user: User, message: str
) -> bool:
    """Ask to join; who asks again before the decision changes nothing.

    True: the person is a member at once, by the domain of a verified address.
    """
    if user.type is UserType.service:
        raise NotForServiceAccounts(user.name, "it belongs to no organization but its own")
    _check_length("message", message)
    await organizations.lock_membership(conn, organization, user)
    if await store.role_of(conn, organization.id, user_id=user.id) is not None:
        raise AlreadyMember(user.name, organization.name)
    if (domain := await find_domain_of(conn, organization, user.id)) is not None:
        await organizations.set_member(conn, actor, organization, user, domain.role)
        return True
    request = JoinRequest(id=new_object_id(), user=user, message=message, created_at=now())
    if not await join_requests_store.add(conn, organization.id, request):
        return False
    await audit.record(conn, organization.id, actor, "join-request.create", target=user.name)
    await publish(
        conn,
        JoinRequested(organization_id=organization.id, user_id=user.id, message=message),
    )
    return False


async def find_domain_of(
    conn: Reader, organization: Organization, user_id: str
) -> EmailDomain | None:
    """Return the domain by which a user may join at once, the one with the highest role."""
    domains = {each.domain: each for each in await list_domains(conn, organization)}
    if not domains:
        return None
    addresses = await security_store.list_verified_addresses(conn, user_id)
    own = [
        domain
        for address in addresses
        if (domain := domains.get(address.rpartition("@")[2].lower())) is not None
    ]
    return max(own, key=lambda each: list(Role).index(each.role), default=None)


async def list_domains(conn: Reader, organization: Organization) -> list[EmailDomain]:
    return await security_store.list_domains(conn, organization.id)


async def set_domain(
    conn: Connection, actor: Actor, organization: Organization, domain: str, role: Role
) -> None:
    """Let people with a verified address of a domain join, with this role."""
    domain = domain.strip().lower()
    if _DOMAIN.fullmatch(domain) is None:
        raise InvalidEmailDomain("domain must be one such as example.com, in ASCII.")
    if role is Role.admin:
        raise InvalidEmailDomain("role: nobody becomes an administrator by their address alone.")
    await conn.lock(f"domains of {organization.id}")
    domains = {each.domain: each.role for each in await list_domains(conn, organization)}
    if domains.get(domain) is role:
        return
    if domain not in domains and len(domains) >= MAX_DOMAINS:
        raise InvalidEmailDomain(f"An organization has at most {MAX_DOMAINS} e-mail domains.")
    await security_store.set_domain(conn, organization.id, domain=domain, role=role)
    await audit.record(
        conn, organization.id, actor, "email-domain.set", target=domain, details={"role": role}
    )


async def remove_domain(
    conn: Connection, actor: Actor, organization: Organization, domain: str
) -> None:
    """Stop people of a domain from joining by themselves; who joined stays."""
    if not await security_store.remove_domain(conn, organization.id, domain.lower()):
        raise EmailDomainNotFound(domain, organization.name)
    await audit.record(conn, organization.id, actor, "email-domain.remove", target=domain.lower())


async def is_pending(conn: Reader, organization: Organization, *, user_id: str) -> bool:
    """Tell whether a user waits for a decision."""
    found = await join_requests_store.find(conn, organization.id, user_id=user_id)
    return found is not None


async def withdraw(conn: Connection, actor: Actor, organization: Organization, user: User) -> None:
    """Take the own request back; doing it again changes nothing."""
    if await join_requests_store.remove(conn, organization.id, user_id=user.id):
        await audit.record(conn, organization.id, actor, "join-request.withdraw", target=user.name)


async def get(conn: Reader, organization: Organization, user: User) -> JoinRequest:
    request = await join_requests_store.find(conn, organization.id, user_id=user.id)
    if request is None:
        raise JoinRequestNotFound(user.name, organization.name)
    return request


async def accept(
    conn: Connection, actor: Actor, organization: Organization, user: User, role: Role
) -> None:
    """Make who asked a member, who is told so."""
    request = await get(conn, organization, user)
    await audit.record(
        conn, organization.id, actor, "join-request.accept", target=request.user.name,
        details={"role": role},
    )  # fmt: skip
    # The request ends with the membership.
    await organizations.set_member(conn, actor, organization, request.user, role)


async def decline(
    conn: Connection, actor: Actor, organization: Organization, user: User, reason: str
) -> None:
    """Decline a request; who asked is told so, with the reason if there is one."""
    _check_length("reason", reason)
    request = await get(conn, organization, user)
    await join_requests_store.remove(conn, organization.id, user_id=user.id)
    await audit.record(
        conn, organization.id, actor, "join-request.decline", target=request.user.name,
        details={"reason": reason} if reason else None,
    )  # fmt: skip
    await publish(
        conn,
        JoinRequestDeclined(organization_id=organization.id, user_id=user.id, reason=reason),
    )


def _check_length(field: str, text: str) -> None:
    if len(text) > MAX_MESSAGE:
        raise InvalidJoinRequest(f"{field} must have at most {MAX_MESSAGE} characters.")
