"""Rules of what somebody may change of the own account."""

from hublet.accounts import service as accounts
from hublet.accounts import store
from hublet.accounts.passwords import verify_password
from hublet.accounts.records import User
from hublet.accounts.settings.errors import NoPassword, WrongPassword
from hublet.core.database import Connection


async def change_password(conn: Connection, user: User, *, current: str, new: str) -> None:
    """Set another password for somebody who knows the present one.

    A token alone is not enough, or whoever found one could lock its owner out.
    """
    hashed = await store.password_hash_of(conn, user.id)
    if hashed is None:
        raise NoPassword
    if not await verify_password(hashed, current):
        raise WrongPassword
    await accounts.set_password(conn, user, new)
