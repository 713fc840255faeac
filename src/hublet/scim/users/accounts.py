"""Accounts behind provisioned users, and their membership in the organization."""

from contextlib import suppress

from hublet.accounts.access import role_of
from hublet.accounts.errors import ResourceGroupNotFound
from hublet.accounts.names import email_key
from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import store as members
from hublet.accounts.records import Organization, Role, User, UserEmail
from hublet.accounts.resource_groups import service as resource_groups
from hublet.accounts.settings import emails, ssh_keys
from hublet.accounts.users import service as accounts
from hublet.accounts.users import store as users
from hublet.core.database import Connection, Reader
from hublet.login import passkeys
from hublet.scim.errors import ScimRefusal
from hublet.scim.records import Directory, FormerRoles, ProvisionedUser
from hublet.scim.users import store
from hublet.tokens import service as tokens

# Groups may give more: see roles.py.
DEFAULT_ROLE = Role.read


async def disable(conn: Connection, account_id: str) -> None:
    """Disable a managed account and revoke its credentials, which never work again."""
    account = await accounts.lock_user(conn, account_id)
    await _end_credentials(conn, account)
    if account.disabled_at is None:
        await accounts.disable_user(conn, account)
        await store.set_disabled_by_provider(conn, account_id)


async def enable(conn: Connection, account_id: str) -> bool:
    """Enable a managed account again; False when a hub administrator has disabled it."""
    account = await accounts.lock_user(conn, account_id)
    if account.disabled_at is None:
        return True
    if not await store.is_disabled_by_provider(conn, account_id):
        return False
    # Also credentials that a concurrent request added after the account was disabled.
    await _end_credentials(conn, account)
    await accounts.enable_user(conn, account)
    return True


async def _end_credentials(conn: Connection, account: User) -> None:
    """Revoke all credentials: the name may be given to another person later."""
    await tokens.revoke_of_user(conn, account.id, reason="organization")
    await ssh_keys.remove_all(conn, user_id=account.id)
    await passkeys.remove_all(conn, user_id=account.id)
    await accounts.remove_password(conn, account)


async def create_managed(conn: Connection, directory: Directory, user: ProvisionedUser) -> User:
    """Create the account of a user. It has no password, so that nobody can log in with one."""
    account = await accounts.create_user(conn, user.user_name, fullname=user.fullname)
    await store.add_managed_account(
        conn, user_id=account.id, organization_id=directory.organization.id
    )
    await accounts.add_first_emails(conn, account, _addresses(user))
    return account


async def reuse_managed(conn: Connection, account_id: str, user: ProvisionedUser) -> None:
    """Give a user an abandoned account of the organization, disabled until the user joins."""
    await sync_managed(conn, await accounts.get_user_by_id(conn, account_id), user)


async def sync_managed(conn: Connection, account: User, user: ProvisionedUser) -> None:
    """Copy the full name and the addresses of a provisioned user to the account."""
    await accounts.set_fullname(conn, account, user.fullname)
    await _set_addresses(conn, account, _addresses(user))


async def free_addresses(conn: Connection, account: User) -> None:
    """Remove the addresses of an account without a user, so that others can have them."""
    await _set_addresses(conn, account, [])


def _addresses(user: ProvisionedUser) -> list[str]:
    """Return each address once, the primary one first."""
    addresses: dict[str, str] = {}
    for each in sorted(user.emails, key=lambda each: not each.primary):
        addresses.setdefault(email_key(each.value), each.value)
    return list(addresses.values())


async def _set_addresses(conn: Connection, account: User, addresses: list[str]) -> None:
    keys = [email_key(address) for address in addresses]
    had = {email_key(email.address) for email in await _list_emails(conn, account)}
    for address, key in zip(addresses, keys, strict=True):
        if key not in had:
            # The organization vouches for the addresses of its own accounts.
            await accounts.add_email(conn, account, address, verified=True)
    for email in await _list_emails(conn, account):
        if email_key(email.address) == next(iter(keys), None):
            await emails.make_primary(conn, email.id, user_id=account.id)
    # The primary one comes last: it can be removed only when there is no other.
    for email in sorted(await _list_emails(conn, account), key=lambda each: each.is_primary):
        if email_key(email.address) not in keys:
            await emails.remove(conn, email.id, user_id=account.id)


async def _list_emails(conn: Connection, account: User) -> list[UserEmail]:
    return await users.list_emails(conn, user_id=account.id)


async def lock_membership(conn: Connection, directory: Directory, account_id: str | None) -> None:
    """Lock the membership of an account against changes by hand until the transaction ends.

    Call it before a user is written: a change by hand locks the membership first, then writes the
    user.
    """
    if account_id is not None:
        account = await accounts.get_user_by_id(conn, account_id)
        await organizations.lock_membership(conn, directory.organization, account)


async def roles_of(conn: Reader, organization: Organization, user_id: str) -> FormerRoles:
    """Return the roles of a member in the organization and in its resource groups."""
    groups = await members.list_groups_of_member(conn, organization.id, user_id=user_id)
    return FormerRoles(
        role=await role_of(conn, organization.id, user_id=user_id),
        resource_groups={group.group_id: group.role for group in groups},
    )


async def join(
    conn: Connection, directory: Directory, account_id: str, *, former: FormerRoles
) -> None:
    """Make an account a member with its former roles; a present member keeps the present role."""
    organization, actor = directory.organization, directory.actor
    account = await accounts.get_user_by_id(conn, account_id)
    if directory.managed and not await enable(conn, account_id):
        raise ScimRefusal(
            403,
            f"An administrator of the hub has switched the account {account.name} off, "
            "and only one can switch it on again.",
        )
    held = await roles_of(conn, organization, account_id)
    if held.role is None:
        role = former.role or DEFAULT_ROLE
        await organizations.set_member(conn, actor, organization, account, role)
    for group_id, role in former.resource_groups.items():
        # The group may have been deleted meanwhile.
        with suppress(ResourceGroupNotFound):
            group = await resource_groups.get(conn, organization, group_id)
            await resource_groups.set_member(conn, actor, organization, group, account, role)


async def join_with_new_account(conn: Connection, directory: Directory, account: User) -> None:
    """Make an account a member that this transaction created: it has no roles, locks or bans."""
    await organizations.add_member(
        conn, directory.actor, directory.organization, account, DEFAULT_ROLE
    )


async def leave(conn: Connection, directory: Directory, account_id: str) -> None:
    """End a membership, and revoke the credentials that are confined to the organization.

    A managed account is disabled. A person's own account stays, with its other tokens: without
    the membership those do not reach the organization.
    """
    organization, actor = directory.organization, directory.actor
    account = await accounts.get_user_by_id(conn, account_id)
    held = await roles_of(conn, organization, account_id)
    if held.role is not None:
        await organizations.remove_member(conn, actor, organization, account)
    if directory.managed:
        await disable(conn, account_id)
    else:
        await tokens.revoke_of_user(
            conn, account_id, reason="organization", organization_id=organization.id
        )
