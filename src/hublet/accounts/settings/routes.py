"""HTTP routes for one's own profile, e-mail addresses and SSH keys."""

from pydantic import MISSING

from hublet.accounts.settings import emails, ssh_keys, store
from hublet.accounts.settings.schemas import (
    AddEmail,
    AddSshKey,
    Email,
    Profile,
    SshKey,
    UpdateProfile,
)
from hublet.accounts.users import service
from hublet.accounts.users import store as users
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner

router = Router(prefix="/api/settings", tags=["users"])


@router.get("/profile")
async def get_profile(conn: ReadConn, caller: AccountOwner) -> Profile:
    """Show the caller's own profile."""
    user = await service.get_user_by_id(conn, caller.user_id)
    return Profile.of(user, base_url=conn.hub.settings.base_url)


@router.patch("/profile")
async def update_profile(conn: Conn, caller: AccountOwner, body: UpdateProfile) -> Profile:
    """Change the caller's own profile; a field that is left out keeps its value."""
    user = await service.get_user_by_id(conn, caller.user_id)
    if body.fullname is not MISSING:
        user = await service.set_fullname(conn, user, body.fullname)
    return Profile.of(user, base_url=conn.hub.settings.base_url)


emails_router = Router(prefix="/api/settings/emails", tags=["users"])


@emails_router.get("")
async def list_emails(conn: ReadConn, caller: AccountOwner) -> list[Email]:
    """List the caller's own e-mail addresses, oldest first."""
    return [Email.of(email) for email in await users.list_emails(conn, user_id=caller.user_id)]


@emails_router.post(
    "", responses={409: {"description": "The address belongs to an account already."}}
)
async def add_email(conn: Conn, caller: AccountOwner, body: AddEmail) -> Email:
    """Add an e-mail address, which is to be verified; the first one is the primary one."""
    user = await service.get_user_by_id(conn, caller.user_id)
    return Email.of(await emails.add(conn, user, body.email))


@emails_router.delete("/{email_id}", responses={409: {"description": "It is the primary address."}})
async def remove_email(conn: Conn, caller: AccountOwner, email_id: str) -> Done:
    """Remove an e-mail address; the primary one only when it is the last one."""
    await emails.remove(conn, email_id, user_id=caller.user_id)
    return Done()


@emails_router.post("/{email_id}/primary", responses={409: {"description": "It is not verified."}})
async def make_email_primary(conn: Conn, caller: AccountOwner, email_id: str) -> Email:
    """Make a verified e-mail address the primary one, which the hub writes to."""
    return Email.of(await emails.make_primary(conn, email_id, user_id=caller.user_id))


ssh_keys_router = Router(prefix="/api/settings/ssh-keys", tags=["users"])


@ssh_keys_router.get("")
async def list_ssh_keys(conn: ReadConn, caller: AccountOwner) -> list[SshKey]:
    """List the caller's own SSH keys, oldest first."""
    return [SshKey.of(key) for key in await store.list_ssh_keys(conn, user_id=caller.user_id)]


@ssh_keys_router.post(
    "", responses={409: {"description": "The key belongs to an account already."}}
)
async def add_ssh_key(conn: Conn, caller: AccountOwner, body: AddSshKey) -> SshKey:
    """Register an SSH key: the line of an `id_….pub` file."""
    key = await ssh_keys.add(conn, user_id=caller.user_id, title=body.title, text=body.key)
    return SshKey.of(key)


@ssh_keys_router.delete("/{key_id}")
async def remove_ssh_key(conn: Conn, caller: AccountOwner, key_id: str) -> Done:
    """Remove an SSH key; nobody can log in with it any more."""
    await ssh_keys.remove(conn, key_id, user_id=caller.user_id)
    return Done()
