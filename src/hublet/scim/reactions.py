"""What happens elsewhere and concerns provisioned users."""

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Actor
from hublet.core.database import Connection
from hublet.core.outbox import reacts_at_once_to, reacts_to
from hublet.events import EmailVerified, MemberAdded, MemberRemoved, UserCreated
from hublet.scim.accounts import membership
from hublet.scim.records import Directory
from hublet.scim.users import service, store

_SCIM = Actor(id=None, name="scim")


@reacts_to(UserCreated)
async def let_in_new_user(conn: Connection, event: UserCreated) -> None:
    """An account is created with an address that an invited user waits for."""
    await _let_in(conn, event.user_id)


@reacts_to(EmailVerified)
async def let_in_owner_of_address(conn: Connection, event: EmailVerified) -> None:
    await _let_in(conn, event.user_id)


async def _let_in(conn: Connection, user_id: str) -> None:
    for organization_name, user in await store.list_waiting_for(conn, user_id):
        organization = await organizations.get(conn, organization_name)
        directory = Directory(organization=organization, managed=False, actor=_SCIM)
        await service.join_waiting(conn, directory, user)


@reacts_at_once_to(MemberAdded)
async def note_arrival(conn: Connection, event: MemberAdded) -> None:
    """Somebody let a provisioned user in again without the provider."""
    await store.set_active(
        conn, event.organization_id, user_id=event.user_id, active=True, at=service.moment()
    )


@reacts_at_once_to(MemberRemoved)
async def note_departure(conn: Connection, event: MemberRemoved) -> None:
    """A provisioned user left, or was removed, without the provider: it is to see that.

    A managed account is the organization's, and nobody takes it along.
    """
    if await store.set_active(
        conn, event.organization_id, user_id=event.user_id, active=False, at=service.moment()
    ):
        await membership.switch_off(conn, event.user_id)
