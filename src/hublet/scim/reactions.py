"""Reactions of SCIM: invitations, and members who come or go without the provider."""

import msgspec

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Actor
from hublet.core import queue
from hublet.core.database import Connection, Database
from hublet.core.outbox import reacts_in_transaction_to, reacts_to
from hublet.core.queue import NewTask, handles_slowly
from hublet.events import EmailVerified, MemberAdded, MemberRemoved, UserCreated
from hublet.scim.records import Directory
from hublet.scim.users import accounts, service, store

_SCIM_ACTOR = Actor(id=None, name="scim")
ACCEPT_INVITATION = "scim.let-in"


class Invitation(msgspec.Struct, frozen=True):
    """Of a user who waits in an organization's directory."""

    organization: str
    scim_user_id: str


@reacts_to(UserCreated)
async def let_in_new_user(conn: Connection, event: UserCreated) -> None:
    """An account is created with an address that an invited user waits for."""
    await _queue_invitations(conn, event.user_id)


@reacts_to(EmailVerified)
async def let_in_owner_of_address(conn: Connection, event: EmailVerified) -> None:
    await _queue_invitations(conn, event.user_id)


async def _queue_invitations(conn: Connection, user_id: str) -> None:
    """Leave each to a task of its own: what one organization wrote concerns no other."""
    found = await store.list_invitations(conn, user_id)
    invitations = [Invitation(organization=name, scim_user_id=each) for name, each in found]
    bodies = [msgspec.json.encode(invitation).decode() for invitation in invitations]
    await queue.add_many(conn, [NewTask(kind=ACCEPT_INVITATION, body=body) for body in bodies])


@handles_slowly(ACCEPT_INVITATION, reads=Invitation)
async def accept_invitation(database: Database, invitation: Invitation) -> None:
    """It holds the directory as a provider does, so no other task may share the transaction."""
    async with database.transaction() as conn:
        organization = await organizations.get(conn, invitation.organization)
        directory = Directory(organization=organization, managed=False, actor=_SCIM_ACTOR)
        await service.accept_invitation(conn, directory, invitation.scim_user_id)


@reacts_in_transaction_to(MemberAdded)
async def note_arrival(conn: Connection, event: MemberAdded) -> None:
    """Somebody let a provisioned user in again without the provider.

    A managed account comes along, unless an administrator of the hub has switched it off.
    """
    if await store.set_active(
        conn, event.organization_id, user_id=event.user_id, active=True, at=service.current_time()
    ):
        await accounts.enable(conn, event.user_id)


@reacts_in_transaction_to(MemberRemoved)
async def note_departure(conn: Connection, event: MemberRemoved) -> None:
    """A provisioned user left, or was removed, without the provider: it is to see that.

    A managed account is the organization's, and nobody takes it along.
    """
    if await store.set_active(
        conn, event.organization_id, user_id=event.user_id, active=False, at=service.current_time()
    ):
        await accounts.disable(conn, event.user_id)
