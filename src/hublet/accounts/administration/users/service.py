"""Rules of what a hub administrator may do to users."""

from hublet.accounts import service as accounts
from hublet.accounts import store
from hublet.accounts.errors import LastHubAdministrator
from hublet.accounts.records import User
from hublet.core.database import Connection


async def update(
    conn: Connection, user: User, *, disabled: bool | None, is_admin: bool | None
) -> User:
    """Switch an account off or on, make its owner an administrator or none; None keeps it."""
    if user.is_admin and (disabled or is_admin is False):
        await _keep_an_administrator(conn, besides=user)
    if is_admin is not None:
        user = await accounts.set_administrator(conn, user, is_admin=is_admin)
    if disabled is not None:
        switch = accounts.disable_user if disabled else accounts.enable_user
        user = await switch(conn, user)
    return user


async def _keep_an_administrator(conn: Connection, *, besides: User) -> None:
    """Two administrators who demote each other at the same moment must not both succeed."""
    await conn.lock("hub administrators")
    if not await store.count_other_administrators(conn, besides.id):
        raise LastHubAdministrator
