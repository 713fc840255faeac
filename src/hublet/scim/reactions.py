"""Reactions of SCIM: accepted invitations, and memberships that change without the provider."""

import msgspec

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Actor
from hublet.core import queue
from hublet.core.database import Connection, Database
from hublet.core.outbox import reacts_in_transaction_to, reacts_to
from hublet.core.queue import NewTask, handles_slowly
from hublet.events import EmailVerified, MemberAdded, MemberRemoved, UserCreated
from hublet.scim.directory import current_time
from hublet.scim.records import Directory
from hublet.scim.users import accounts, service, store

_SCIM_ACTOR = Actor(id=None, name="scim")
ACCEPT_INVITATION = "scim.let-in"


class Invitation(msgspec.Struct, frozen=True):
    """The task of one invited user in the directory of an organization."""

    organization: str
    scim_user_id: str


@reacts_to(UserCreated)
async def queue_invitations_of_new_user(conn: Connection, event: UserCreated) -> None:
    await _queue_invitations(conn, event.user_id)


@reacts_to(EmailVerified)
async def queue_invitations_of_verified_email(conn: Connection, event: EmailVerified) -> None:
    await _queue_invitations(conn, event.user_id)


async def _queue_invitations(conn: Connection, user_id: str) -> None:
    """Add a task for each invitation: a failure in one organization must not affect others."""
    invitations = [
        Invitation(organization=name, scim_user_id=scim_user_id)
        for name, scim_user_id in await store.list_invitations(conn, user_id)
    ]
    bodies = [msgspec.json.encode(invitation).decode() for invitation in invitations]
    await queue.add_many(conn, [NewTask(kind=ACCEPT_INVITATION, body=body) for body in bodies])


@handles_slowly(ACCEPT_INVITATION, reads=Invitation)
async def accept_invitation(database: Database, invitation: Invitation) -> None:
    """Accept an invitation in a transaction of its own, because it locks the directory."""
    async with database.transaction() as conn:
        organization = await organizations.get(conn, invitation.organization)
        directory = Directory(organization=organization, managed=False, actor=_SCIM_ACTOR)
        await service.accept_invitation(conn, directory, invitation.scim_user_id)


@reacts_in_transaction_to(MemberAdded)
async def activate_added_member(conn: Connection, event: MemberAdded) -> None:
    """Mark a provisioned user as active who was made a member without the provider.

    A managed account is enabled, unless a hub administrator has disabled it.
    """
    if await store.set_active(
        conn, event.organization_id, user_id=event.user_id, active=True, at=current_time()
    ):
        await accounts.enable(conn, event.user_id)


@reacts_in_transaction_to(MemberRemoved)
async def deactivate_removed_member(conn: Connection, event: MemberRemoved) -> None:
    """Mark a provisioned user as inactive who left, or was removed, without the provider.

    A managed account belongs to the organization, so it is disabled.
    """
    if await store.set_active(
        conn, event.organization_id, user_id=event.user_id, active=False, at=current_time()
    ):
        await accounts.disable(conn, event.user_id)
