"""HTTP for the caller's own e-mail addresses."""

from hublet.accounts import service as accounts
from hublet.accounts import store as users
from hublet.accounts.settings.emails import service
from hublet.accounts.settings.emails.schemas import AddEmail, Email
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner

router = Router(prefix="/api/settings/emails", tags=["users"])


@router.get("")
async def list_emails(conn: ReadConn, caller: AccountOwner) -> list[Email]:
    """List the caller's own e-mail addresses, oldest first."""
    return [Email.of(email) for email in await users.list_emails(conn, user_id=caller.user_id)]


@router.post("", responses={409: {"description": "The address belongs to an account already."}})
async def add_email(conn: Conn, caller: AccountOwner, body: AddEmail) -> Email:
    """Add an e-mail address, which is to be verified; the first one is the primary one."""
    user = await accounts.get_user_by_id(conn, caller.user_id)
    return Email.of(await service.add(conn, user, body.email))


@router.delete("/{email_id}", responses={409: {"description": "It is the primary address."}})
async def remove_email(conn: Conn, caller: AccountOwner, email_id: str) -> Done:
    """Remove an e-mail address; the primary one only when it is the last one."""
    await service.remove(conn, email_id, user_id=caller.user_id)
    return Done()


@router.post("/{email_id}/primary", responses={409: {"description": "It is not verified."}})
async def make_email_primary(conn: Conn, caller: AccountOwner, email_id: str) -> Email:
    """Make a verified e-mail address the primary one, which the hub writes to."""
    return Email.of(await service.make_primary(conn, email_id, user_id=caller.user_id))
