"""Accounts that belong to an organization: created, named and addressed by its provider."""

from hublet.accounts import service as accounts
from hublet.accounts.names import email_key
from hublet.accounts.records import User
from hublet.accounts.settings.emails import service as emails
from hublet.core.database import Connection
from hublet.scim.accounts import store
from hublet.scim.records import Directory, ScimUser


async def open_account(conn: Connection, directory: Directory, user: ScimUser) -> User:
    """Create the account of a user, or take the one of this name that the organization left.

    It has no password: nobody can log in to it by one. One that was left is off until its user
    joins the organization.
    """
    organization_id = directory.organization.id
    account = await _find_left(conn, directory, user.user_name)
    if account is None:
        account = await accounts.create_user(conn, user.user_name)
        await store.take_account(conn, user_id=account.id, organization_id=organization_id)
    await follow(conn, account, user)
    return account


async def _find_left(conn: Connection, directory: Directory, name: str) -> User | None:
    account_id = await store.find_left_account(
        conn, name, organization_id=directory.organization.id
    )
    return None if account_id is None else await accounts.get_user_by_id(conn, account_id)


async def follow(conn: Connection, account: User, user: ScimUser) -> None:
    """Give the account the name and the addresses that the provider gives the user."""
    await accounts.set_fullname(conn, account, user.fullname)
    await _set_addresses(conn, account, _addresses(user))


async def free_addresses(conn: Connection, account: User) -> None:
    """Let others have the addresses of an account that nobody uses any more."""
    await _set_addresses(conn, account, [])


def _addresses(user: ScimUser) -> list[str]:
    """Return each address once, the primary one first."""
    addresses: dict[str, str] = {}
    for each in sorted(user.emails, key=lambda each: not each.primary):
        addresses.setdefault(email_key(each.value), each.value)
    return list(addresses.values())


async def _set_addresses(conn: Connection, account: User, wanted: list[str]) -> None:
    keys = [email_key(address) for address in wanted]
    had = {email_key(address) for _, address, _ in await _own(conn, account)}
    for address, key in zip(wanted, keys, strict=True):
        if key not in had:
            # The organization vouches for the addresses of its own accounts.
            await accounts.add_email(conn, account, address, verified=True)
    own = await _own(conn, account)
    for email_id, address, _ in own:
        if email_key(address) == next(iter(keys), None):
            await emails.make_primary(conn, email_id, user_id=account.id)
    # The primary one comes last: it goes only when there is no other.
    for email_id, address, _ in sorted(await _own(conn, account), key=lambda each: each[2]):
        if email_key(address) not in keys:
            await emails.remove(conn, email_id, user_id=account.id)


async def _own(conn: Connection, account: User) -> list[tuple[str, str, bool]]:
    return await store.list_account_emails(conn, account.id)
