"""Rules of one's own e-mail addresses: adding, verifying, the primary one."""

from dataclasses import replace

from hublet.accounts.errors import EmailIsPrimary, EmailNotFound, EmailNotVerified, TooManyEmails
from hublet.accounts.records import User, UserEmail
from hublet.accounts.settings import store
from hublet.accounts.users import service as accounts
from hublet.accounts.users import store as users
from hublet.core.database import Connection, Reader
from hublet.core.outbox import publish
from hublet.events import EmailAdded, EmailRemoved, EmailVerified, PrimaryEmailChanged

# Also an unverified address is taken for other users, so nobody may hoard them.
MAX_EMAILS = 20


async def add(conn: Connection, user: User, address: str) -> UserEmail:
    """Add an address that is not verified yet."""
    if len(await _lock_and_list(conn, user.id)) >= MAX_EMAILS:
        raise TooManyEmails(MAX_EMAILS)
    email = await accounts.add_email(conn, user, address, verified=False)
    await publish(conn, EmailAdded(user_id=user.id, email_id=email.id))
    return email


async def find(conn: Reader, email_id: str) -> UserEmail | None:
    return await store.find_email(conn, email_id)


async def get(conn: Reader, email_id: str, *, user_id: str) -> UserEmail:
    """Return an address of the user's own."""
    return _get_among(await users.list_emails(conn, user_id=user_id), email_id)


async def verify(conn: Connection, email_id: str, *, address: str) -> bool:
    """Mark an address as verified, which is idempotent; False when it was removed meanwhile."""
    if not await store.set_email_verified(conn, email_id, address=address):
        return False
    email = await store.find_email(conn, email_id)
    if email is not None:
        await publish(conn, EmailVerified(user_id=email.user_id, email_id=email_id))
    return True


async def make_primary(conn: Connection, email_id: str, *, user_id: str) -> UserEmail:
    email = _get_among(await _lock_and_list(conn, user_id), email_id)
    if email.verified_at is None:
        raise EmailNotVerified(email.address)
    if not email.is_primary:
        await store.set_primary_email(conn, email.id, user_id=user_id)
        await publish(conn, PrimaryEmailChanged(user_id=user_id, email_id=email.id))
    return replace(email, is_primary=True)


async def remove(conn: Connection, email_id: str, *, user_id: str) -> None:
    emails = await _lock_and_list(conn, user_id)
    email = _get_among(emails, email_id)
    if email.is_primary and len(emails) > 1:
        raise EmailIsPrimary(email.address)
    await store.remove_email(conn, email.id)
    await publish(conn, EmailRemoved(user_id=user_id, email_id=email.id))


async def _lock_and_list(conn: Connection, user_id: str) -> list[UserEmail]:
    """Lock the user's list of addresses until the transaction ends; return it."""
    await conn.lock(f"e-mail addresses of {user_id}")
    return await users.list_emails(conn, user_id=user_id)


def _get_among(emails: list[UserEmail], email_id: str) -> UserEmail:
    for email in emails:
        if email.id == email_id:
            return email
    raise EmailNotFound(email_id)
