"""Accounts behind provisioned users, and their membership in the organization."""

from contextlib import suppress

from hublet.accounts.errors import ResourceGroupNotFound
from hublet.accounts.names import email_key
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role, User
from hublet.accounts.resource_groups import service as resource_groups
from hublet.accounts.settings import emails, ssh_keys
from hublet.accounts.users import service as accounts
from hublet.core.database import Connection
from hublet.login import passkeys
from hublet.scim.errors import ScimRefusal
from hublet.scim.records import Directory, KeptRoles, ProvisionedUser
from hublet.scim.users import accounts_store
from hublet.tokens import service as tokens


async def disable(conn: Connection, account_id: str) -> None:
    """End a managed account everywhere: no credential of it works again, also not later."""
    account = await accounts.lock_user(conn, account_id)
    await _end_credentials(conn, account)
    if account.disabled_at is None:
        await accounts.disable_user(conn, account)
        await accounts_store.set_disabled_by_provider(conn, account_id)


async def enable(conn: Connection, account_id: str) -> bool:
    """Open a managed account again; False when it is not the provider who switched it off."""
    account = await accounts.lock_user(conn, account_id)
    if account.disabled_at is None:
        return True
    if not await accounts_store.is_disabled_by_provider(conn, account_id):
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


async def open_managed(conn: Connection, directory: Directory, user: ProvisionedUser) -> User:
    """Create the account of a user, or take the one of this name that the organization left.

    It has no password: nobody can log in to it by one. One that was left is off until its user
    joins the organization.
    """
    organization_id = directory.organization.id
    account = await _find_abandoned(conn, directory, user.user_name)
    if account is None:
        account = await accounts.create_user(conn, user.user_name)
        await accounts_store.add_managed(conn, user_id=account.id, organization_id=organization_id)
    await sync_managed(conn, account, user)
    return account


async def _find_abandoned(conn: Connection, directory: Directory, name: str) -> User | None:
    account_id = await accounts_store.find_abandoned(
        conn, name, organization_id=directory.organization.id
    )
    return None if account_id is None else await accounts.get_user_by_id(conn, account_id)


async def sync_managed(conn: Connection, account: User, user: ProvisionedUser) -> None:
    """Give the account the name and the addresses that the provider gives the user."""
    await accounts.set_fullname(conn, account, user.fullname)
    await _set_addresses(conn, account, _addresses(user))


async def free_addresses(conn: Connection, account: User) -> None:
    """Let others have the addresses of an account that nobody uses any more."""
    await _set_addresses(conn, account, [])


def _addresses(user: ProvisionedUser) -> list[str]:
    """Return each address once, the primary one first."""
    addresses: dict[str, str] = {}
    for each in sorted(user.emails, key=lambda each: not each.primary):
        addresses.setdefault(email_key(each.value), each.value)
    return list(addresses.values())


async def _set_addresses(conn: Connection, account: User, wanted: list[str]) -> None:
    keys = [email_key(address) for address in wanted]
    had = {email_key(address) for _, address, _ in await _list_addresses(conn, account)}
    for address, key in zip(wanted, keys, strict=True):
        if key not in had:
            # The organization vouches for the addresses of its own accounts.
            await accounts.add_email(conn, account, address, verified=True)
    own = await _list_addresses(conn, account)
    for email_id, address, _ in own:
        if email_key(address) == next(iter(keys), None):
            await emails.make_primary(conn, email_id, user_id=account.id)
    # The primary one comes last: it goes only when there is no other.
    for email_id, address, _ in sorted(
        await _list_addresses(conn, account), key=lambda each: each[2]
    ):
        if email_key(address) not in keys:
            await emails.remove(conn, email_id, user_id=account.id)


async def _list_addresses(conn: Connection, account: User) -> list[tuple[str, str, bool]]:
    return await accounts_store.list_account_emails(conn, account.id)


# Groups give more: see groups/mapping.py.
DEFAULT_ROLE = Role.read


async def lock_membership(conn: Connection, directory: Directory, account_id: str | None) -> None:
    """Let nobody change somebody's place by hand until the end.

    To be called before a user is written: by hand the place changes first, and the user with it.
    """
    if account_id is not None:
        account = await accounts.get_user_by_id(conn, account_id)
        await organizations.lock_membership(conn, directory.organization, account)


async def join(conn: Connection, directory: Directory, account_id: str, *, kept: KeptRoles) -> None:
    """Make somebody a member with the roles they had; who is one already keeps theirs."""
    organization, actor = directory.organization, directory.actor
    account = await accounts.get_user_by_id(conn, account_id)
    if directory.managed and not await enable(conn, account_id):
        raise ScimRefusal(
            403,
            f"An administrator of the hub has switched the account {account.name} off, "
            "and only one can switch it on again.",
        )
    held = await accounts_store.roles_of(conn, organization_id=organization.id, user_id=account_id)
    if held.role is None:
        role = kept.role or DEFAULT_ROLE
        await organizations.set_member(conn, actor, organization, account, role)
    for group_id, role in kept.resource_groups.items():
        # A group may have been deleted meanwhile.
        with suppress(ResourceGroupNotFound):
            group = await resource_groups.get(conn, organization, group_id)
            await resource_groups.set_member(conn, actor, organization, group, account, role)


async def leave(conn: Connection, directory: Directory, account_id: str) -> None:
    """End a membership, with every credential that reaches into the organization by itself.

    A managed account ends everywhere. Whoever has an account of their own keeps it, with the
    tokens that are for all of it: without the membership those do not reach the organization.
    """
    organization, actor = directory.organization, directory.actor
    account = await accounts.get_user_by_id(conn, account_id)
    held = await accounts_store.roles_of(conn, organization_id=organization.id, user_id=account_id)
    if held.role is not None:
        await organizations.remove_member(conn, actor, organization, account)
    if directory.managed:
        await disable(conn, account_id)
    else:
        await tokens.revoke_of_user(
            conn, account_id, reason="organization", organization_id=organization.id
        )
