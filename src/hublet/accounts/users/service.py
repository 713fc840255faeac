"""Rules of users: creating, disabling and promoting accounts, passwords, following."""

from collections.abc import Sequence
from dataclasses import replace

from hublet.accounts.errors import (
    CannotFollowYourself,
    EmailTaken,
    LastAdministrator,
    LastHubAdministrator,
    NameTaken,
    NotForServiceAccounts,
    UserNotFound,
)
from hublet.accounts.names import check_email, check_fullname, check_imported_name, check_name
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import store as organizations
from hublet.accounts.passwords import check_strength, hash_password, verify_password
from hublet.accounts.records import Actor, Role, User, UserEmail, UserType
from hublet.accounts.users import store
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.database.engine import CREDENTIALS_CHANNEL
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish
from hublet.events import (
    AdministratorChanged,
    PasswordChanged,
    UserCreated,
    UserDisabled,
    UserEnabled,
    UserFollowed,
    UserUpdated,
)


async def create_user(  # noqa: PLR0913 - all that an account begins with
    conn: Connection,
    name: str,
    *,
    fullname: str | None = None,
    email: str | None = None,
    password: str | None = None,
    password_hash: str | None = None,
    is_admin: bool = False,
    any_name: bool = False,
) -> User:
    """Create a person's account; without a password nobody can log in to it by password.

    Who has checked and hashed one before the transaction gives its hash.
    """
    (check_imported_name if any_name else check_name)(name)
    check_fullname(fullname or name)
    if password is not None:
        check_strength(password, name=name)
        password_hash = await hash_password(password)
    user = User(
        id=new_object_id(),
        name=name,
        fullname=fullname or name,
        is_admin=is_admin,
        created_at=now(),
    )
    await add_user(conn, user, password_hash=password_hash)
    if email is not None:
        await add_email(conn, user, email, verified=True)
    await publish(conn, UserCreated(user_id=user.id, name=user.name))
    return user


async def add_user(conn: Connection, user: User, *, password_hash: str | None) -> None:
    if not await store.reserve_name(conn, user.name, account_id=user.id, type=user.type):
        raise NameTaken(user.name)
    await store.add(conn, user, password_hash=password_hash)


async def add_email(conn: Connection, user: User, address: str, *, verified: bool) -> UserEmail:
    """Add an address; the first one becomes the primary one."""
    check_email(address)
    is_primary = not await store.list_emails(conn, user_id=user.id)
    return await _add_email(conn, user, address, is_primary=is_primary, verified=verified)


async def add_first_emails(conn: Connection, user: User, addresses: Sequence[str]) -> None:
    """Add the verified addresses of an account that has none; the first one becomes the primary one."""
    for number, address in enumerate(addresses):
        check_email(address)
        await _add_email(conn, user, address, is_primary=not number, verified=True)


async def _add_email(
    conn: Connection, user: User, address: str, *, is_primary: bool, verified: bool
) -> UserEmail:
    email = UserEmail(
        id=new_object_id(),
        user_id=user.id,
        address=address,
        is_primary=is_primary,
        created_at=now(),
        verified_at=now() if verified else None,
    )
    if not await store.add_email(conn, email):
        raise EmailTaken(address)
    return email


async def get_user(conn: Reader, name: str) -> User:
    user = await store.find_by_name(conn, name)
    if user is None:
        raise UserNotFound(name)
    return user


async def get_visible_user(conn: Reader, name: str, *, to_administrator: bool) -> User:
    """Return a user; one who is disabled exists for hub administrators only."""
    user = await get_user(conn, name)
    if user.disabled_at is not None and not to_administrator:
        raise UserNotFound(name)
    return user


async def get_user_by_id(conn: Reader, user_id: str) -> User:
    user = await store.find(conn, user_id)
    if user is None:
        raise UserNotFound(user_id)
    return user


async def set_fullname(conn: Connection, user: User, fullname: str) -> User:
    if fullname == user.fullname:
        return user
    check_fullname(fullname)
    await store.set_fullname(conn, user.id, fullname)
    await publish(conn, UserUpdated(user_id=user.id))
    return replace(user, fullname=fullname)


async def set_administrator(conn: Connection, user: User, *, is_admin: bool) -> User:
    """Make a user a hub administrator, or no longer; every process applies it to tokens at once."""
    if is_admin is user.is_admin:
        return user
    if user.type is UserType.service:
        raise NotForServiceAccounts(user.name, "it cannot be a hub administrator")
    await store.set_administrator(conn, user.id, is_admin=is_admin)
    await publish(conn, AdministratorChanged(user_id=user.id, is_admin=is_admin))
    conn.wake(CREDENTIALS_CHANNEL)
    return replace(user, is_admin=is_admin)


async def disable_user(conn: Connection, user: User) -> User:
    """Disable an account; its credentials fail from now on, in every process.

    An account that is disabled already counts as disabled since now: the latest decision counts.
    """
    user = await lock_user(conn, user.id)
    await store.set_disabled(conn, user.id, disabled=True)
    if user.disabled_at is None:
        await publish(conn, UserDisabled(user_id=user.id))
        conn.wake(CREDENTIALS_CHANNEL)
    return replace(user, disabled_at=now())


async def enable_user(conn: Connection, user: User) -> User:
    user = await lock_user(conn, user.id)
    if user.disabled_at is None:
        return user
    await store.set_disabled(conn, user.id, disabled=False)
    await publish(conn, UserEnabled(user_id=user.id))
    conn.wake(CREDENTIALS_CHANNEL)
    return replace(user, disabled_at=None)


async def close_account(conn: Connection, actor: Actor, user: User) -> None:
    """Disable an account at the wish of its owner, and record it in each of its organizations.

    Neither the hub nor an organization is left without an administrator.
    """
    if user.is_admin:
        await _check_other_administrator(conn, except_for=user)
    for membership in await store.memberships_of(conn, user_id=user.id):
        organization = membership.organization
        await conn.lock(f"administrators of {organization.id}")
        others = await organizations.count_other_admins(conn, organization.id, user_id=user.id)
        if membership.role is Role.admin and not others:
            raise LastAdministrator(organization.name)
        await audit.record(conn, organization.id, actor, "member.close-account", target=user.name)
    await disable_user(conn, user)


async def lock_user(conn: Connection, user_id: str) -> User:
    """Lock an account against being disabled or enabled until the transaction ends; return it."""
    await conn.lock(f"switch of {user_id}")
    return await get_user_by_id(conn, user_id)


async def set_password(conn: Connection, user: User, password: str) -> None:
    if user.type is UserType.service:
        raise NotForServiceAccounts(user.name, "it has no password")
    check_strength(password, name=user.name)
    await set_password_hash(conn, user, await hash_password(password))


async def set_password_hash(conn: Connection, user: User, password_hash: str) -> None:
    """Set a password that was checked and hashed before the transaction."""
    await store.set_password_hash(conn, user.id, password_hash)
    await publish(conn, PasswordChanged(user_id=user.id))


async def remove_password(conn: Connection, user: User) -> None:
    """Leave an account without a password; sessions that began with it go on."""
    await store.set_password_hash(conn, user.id, None)


async def find_by_password(conn: Reader, name: str, password: str) -> User | None:
    """Return the user when name and password fit and the account is not disabled.

    An unknown name takes as long as a wrong password.
    """
    user = await store.find_by_name(conn, name)
    hashed = await store.password_hash_of(conn, user.id) if user else None
    fits = await verify_password(hashed, password)
    return user if user and fits and user.disabled_at is None else None


async def has_administrator(conn: Reader) -> bool:
    """Tell whether the hub has an administrator, disabled or not."""
    return await store.has_administrator(conn)


async def update_as_administrator(
    conn: Connection, user: User, *, disabled: bool | None, is_admin: bool | None
) -> User:
    """Disable or enable an account, make its owner an administrator or not; None keeps a value."""
    if user.is_admin and (disabled or is_admin is False):
        await _check_other_administrator(conn, except_for=user)
    if is_admin is not None:
        user = await set_administrator(conn, user, is_admin=is_admin)
    if disabled is not None:
        user = await (disable_user if disabled else enable_user)(conn, user)
    return user


async def _check_other_administrator(conn: Connection, *, except_for: User) -> None:
    """Refuse to leave the hub without an administrator.

    The lock is for two administrators who demote each other at the same moment.
    """
    await conn.lock("hub administrators")
    if not await store.count_other_administrators(conn, except_for.id):
        raise LastHubAdministrator


async def follow(conn: Connection, *, follower_id: str, account_id: str) -> None:
    """Follow an account; doing it again changes nothing and publishes no event."""
    if follower_id == account_id:
        raise CannotFollowYourself
    if await store.add_follow(conn, follower_id=follower_id, account_id=account_id):
        await publish(conn, UserFollowed(follower_id=follower_id, account_id=account_id))


async def unfollow(conn: Connection, *, follower_id: str, account_id: str) -> None:
    await store.remove_follow(conn, follower_id=follower_id, account_id=account_id)


async def is_following(conn: Reader, *, viewer_id: str | None, account_id: str) -> bool | None:
    """Tell whether the viewer follows the account; None for an anonymous viewer."""
    if viewer_id is None:
        return None
    return await store.has_follow(conn, follower_id=viewer_id, account_id=account_id)
