"""Join requests: people ask to join an organization, and its administrators decide."""

from hublet.accounts.errors import (
    AlreadyMember,
    InvalidJoinRequest,
    JoinRequestNotFound,
    NotForServiceAccounts,
)
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import store
from hublet.accounts.records import Actor, JoinRequest, Organization, Role, User, UserType
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish
from hublet.events import JoinRequestDeclined, JoinRequested

# Of what somebody writes who asks, and of the reason for which a request is declined.
MAX_MESSAGE = 500


async def create(
    conn: Connection, actor: Actor, organization: Organization, user: User, message: str
) -> None:
    """Ask to join; who asks again before the decision changes nothing."""
    if user.type is UserType.service:
        raise NotForServiceAccounts(user.name, "it belongs to no organization but its own")
    _check_length("message", message)
    await organizations.lock_membership(conn, organization, user)
    if await store.role_of(conn, organization.id, user_id=user.id) is not None:
        raise AlreadyMember(user.name, organization.name)
    request = JoinRequest(id=new_object_id(), user=user, message=message, created_at=now())
    if not await store.add_join_request(conn, organization.id, request):
        return
    await audit.record(conn, organization.id, actor, "join-request.create", target=user.name)
    await publish(
        conn,
        JoinRequested(organization_id=organization.id, user_id=user.id, message=message),
    )


async def is_pending(conn: Reader, organization: Organization, *, user_id: str) -> bool:
    """Tell whether a user waits for a decision."""
    found = await store.find_join_request(conn, organization.id, user_id=user_id)
    return found is not None


async def withdraw(conn: Connection, actor: Actor, organization: Organization, user: User) -> None:
    """Take the own request back; doing it again changes nothing."""
    if await store.remove_join_request(conn, organization.id, user_id=user.id):
        await audit.record(conn, organization.id, actor, "join-request.withdraw", target=user.name)


async def get(conn: Reader, organization: Organization, user: User) -> JoinRequest:
    request = await store.find_join_request(conn, organization.id, user_id=user.id)
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
    await store.remove_join_request(conn, organization.id, user_id=user.id)
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
