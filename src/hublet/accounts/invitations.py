"""Invitations: links that let one person join the hub and, if they name one, an organization."""

import base64
import string
from datetime import timedelta

import msgspec

from hublet.accounts import invitations_store as store
from hublet.accounts.errors import (
    AlreadyMember,
    InvitationNotFound,
    InvitationTooNarrow,
    TooManyInvitations,
)
from hublet.accounts.names import check_email
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import store as organizations_store
from hublet.accounts.records import Actor, Invitation, Organization, Role, User
from hublet.accounts.users import store as users
from hublet.core import queue
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.hub import Hub
from hublet.core.ids import new_object_id, random_text
from hublet.core.logs import get_logger

log = get_logger("invitations")

LIFETIME = timedelta(days=7)
# Open ones, to one organization or to the hub alone.
MAX_INVITATIONS = 100
PATH = "/invitations/"
SEND_INVITATION = "accounts.send-invitation"

_DIGEST = "invitation"
_TOKEN_LENGTH = 43
_TOKEN_ALPHABET = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationMail:
    """What waits in the queue: the link is sealed, as everything secret in the database."""

    invitation_id: str
    recipient: str
    sealed_link: str
    creator_name: str
    organization_name: str | None

    def link(self, hub: Hub) -> str:
        sealed = base64.b64decode(self.sealed_link)
        return hub.keys.open(sealed, context=_seal_context(self.invitation_id)).decode()


async def create(
    conn: Connection,
    actor: Actor,
    *,
    organization: Organization | None,
    role: Role | None,
    email: str | None = None,
) -> tuple[Invitation, str]:
    """Create an invitation; return it with its link, this once.

    The actor is an administrator: of the organization, or of the hub. With an address, and a mail
    server to send it, the link is mailed as well.
    """
    if email is not None:
        check_email(email)
    await conn.lock(f"invitations of {organization.id if organization else 'the hub'}")
    if len(await list_of(conn, organization)) >= MAX_INVITATIONS:
        raise TooManyInvitations(MAX_INVITATIONS)
    invitation = Invitation(
        id=new_object_id(),
        organization_id=organization.id if organization else None,
        role=(role or Role.read) if organization else None,
        email=email,
        creator_id=actor.id,
        creator_name=actor.name,
        created_at=now(),
        expires_at=now() + LIFETIME,
    )
    token = random_text(_TOKEN_LENGTH, _TOKEN_ALPHABET)
    link = f"{conn.hub.settings.base_url}{PATH}{token}"
    digest = conn.hub.keys.digest(_DIGEST, token).hex()
    await store.add(conn, invitation, digest=digest)
    await _record(conn, actor, "invitation.create", invitation)
    if email is not None and conn.hub.settings.mail.smtp_url is not None:
        await _queue_mail(conn, invitation, link, email, organization)
    return invitation, link


async def list_of(conn: Reader, organization: Organization | None) -> list[Invitation]:
    """List the open invitations to an organization, or to the hub alone, newest first."""
    return await store.list_open(conn, organization_id=organization.id if organization else None)


async def revoke(
    conn: Connection, actor: Actor, invitation_id: str, *, organization: Organization | None
) -> None:
    """End an open invitation to this organization, or to the hub alone."""
    for invitation in await list_of(conn, organization):
        if invitation.id == invitation_id and await store.end(conn, invitation_id):
            await _record(conn, actor, "invitation.revoke", invitation)
            return
    raise InvitationNotFound


async def get_by_link(conn: Reader, token: str) -> Invitation:
    """Return the invitation of a link, as long as its creator could still give it."""
    digests = [digest.hex() for digest in conn.hub.keys.digests(_DIGEST, token)]
    invitation = await store.find_open(conn, digests)
    if invitation is None or not await _may_still_invite(conn, invitation):
        raise InvitationNotFound
    return invitation


async def check_newcomer(conn: Reader, invitation: Invitation) -> None:
    """Refuse an invitation that does not reach far enough to create an account with it.

    Anybody can create an organization and invite people to it, so that alone opens no closed hub.
    """
    if conn.hub.settings.login.sign_up == "closed" and not await _is_of_hub(conn, invitation):
        raise InvitationTooNarrow


async def accept(conn: Connection, actor: Actor, token: str, user: User) -> Invitation:
    """Use up an invitation for this user, who joins its organization if it names one."""
    invitation = await get_by_link(conn, token)
    organization = await organization_of(conn, invitation)
    if organization is not None and await organizations.is_member(
        conn, organization, user_id=user.id
    ):
        # It would take away a role as easily as it gives one.
        raise AlreadyMember(user.name, organization.name)
    if not await store.end(conn, invitation.id, accepted_by=user.id):
        raise InvitationNotFound
    await _record(conn, actor, "invitation.accept", invitation)
    if organization is not None:
        role = invitation.role or Role.read
        await organizations.set_member(conn, actor, organization, user, role)
    return invitation


async def organization_of(conn: Reader, invitation: Invitation) -> Organization | None:
    if invitation.organization_id is None:
        return None
    found = await organizations_store.list_by_ids(conn, [invitation.organization_id])
    return found[0] if found else None


async def _may_still_invite(conn: Reader, invitation: Invitation) -> bool:
    """Tell whether the creator could invite now: a link has no more than is left of their rights."""
    if await _is_of_hub(conn, invitation):
        return True
    if invitation.organization_id is None or invitation.creator_id is None:
        return False
    role = await organizations_store.role_of(
        conn, invitation.organization_id, user_id=invitation.creator_id
    )
    creator = await users.find(conn, invitation.creator_id)
    return role is Role.admin and creator is not None and creator.disabled_at is None


async def _is_of_hub(conn: Reader, invitation: Invitation) -> bool:
    """Tell whether the creator runs the hub, or is an administrator of it."""
    if invitation.creator_id is None:
        return True
    creator = await users.find(conn, invitation.creator_id)
    return creator is not None and creator.is_admin and creator.disabled_at is None


async def _record(conn: Connection, actor: Actor, action: str, invitation: Invitation) -> None:
    """Write to the audit log of the organization; the hub has none, so its log has the line."""
    if invitation.organization_id is None:
        # A command says itself what it did.
        if actor.id is not None:
            log.info(action, invitation_id=invitation.id, actor=actor.name)
        return
    details = {"invitation": invitation.id, "role": invitation.role}
    await audit.record(
        conn, invitation.organization_id, actor, action,
        target=actor.name if action == "invitation.accept" else invitation.email or "a link",
        details=details,
    )  # fmt: skip


async def _queue_mail(
    conn: Connection,
    invitation: Invitation,
    link: str,
    recipient: str,
    organization: Organization | None,
) -> None:
    sealed = conn.hub.keys.seal(link.encode(), context=_seal_context(invitation.id))
    mail = InvitationMail(
        invitation_id=invitation.id,
        recipient=recipient,
        sealed_link=base64.b64encode(sealed).decode(),
        creator_name=invitation.creator_name,
        organization_name=organization.fullname if organization else None,
    )
    body = msgspec.json.encode(mail).decode()
    await queue.add(conn, queue.NewTask(kind=SEND_INVITATION, body=body))


def _seal_context(invitation_id: str) -> str:
    return f"invitation {invitation_id}"
