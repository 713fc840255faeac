"""Managed accounts go off and on with their users, unless an administrator of the hub forbids it."""

from hublet.accounts import service as accounts
from hublet.accounts.records import User
from hublet.accounts.settings.ssh_keys import service as ssh_keys
from hublet.core.database import Connection
from hublet.login.passkeys import service as passkeys
from hublet.scim.accounts import store
from hublet.tokens import service as tokens


async def switch_off(conn: Connection, account_id: str) -> None:
    """End a managed account everywhere: no credential of it works again, also not later."""
    account = await accounts.hold_switch(conn, account_id)
    await _end_credentials(conn, account)
    if account.disabled_at is None:
        await accounts.disable_user(conn, account)
        await store.note_switched_off(conn, account_id)


async def switch_on(conn: Connection, account_id: str) -> bool:
    """Open a managed account again; False when it is not the provider who switched it off."""
    account = await accounts.hold_switch(conn, account_id)
    if account.disabled_at is None:
        return True
    if not await store.is_switched_off(conn, account_id):
        return False
    # Also what a request that was under way has added after the end.
    await _end_credentials(conn, account)
    await accounts.enable_user(conn, account)
    return True


async def _end_credentials(conn: Connection, account: User) -> None:
    """The name may be given to another person, to whom nothing of the former one opens."""
    await tokens.revoke_of_user(conn, account.id, reason="organization")
    await ssh_keys.remove_all(conn, user_id=account.id)
    await passkeys.remove_all(conn, user_id=account.id)
    await accounts.remove_password(conn, account)
