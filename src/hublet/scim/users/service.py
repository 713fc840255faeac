"""Rules of provisioned users: who they are here, and what becomes of them."""

from dataclasses import replace

from hublet.accounts import service as accounts
from hublet.accounts.audit import service as audit
from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.scim.accounts import managed, membership
from hublet.scim.accounts import store as accounts_store
from hublet.scim.errors import ScimRefusal, taken
from hublet.scim.groups import roles
from hublet.scim.holding import hold
from hublet.scim.records import Directory, ScimUser, Stamp
from hublet.scim.users import rules, store
from hublet.scim.users.keeping import to_keep
from hublet.scim.users.waiting import service as waiting


async def get(conn: Reader, directory: Directory, scim_user_id: str) -> ScimUser:
    user = await store.find(conn, directory, scim_user_id)
    if user is None:
        raise ScimRefusal(404, f"There is no user {scim_user_id} in this directory.")
    return user


async def create(conn: Connection, directory: Directory, draft: ScimUser) -> ScimUser:
    """Provision a user: a managed account, a member, or an invitation that waits for an account."""
    rules.check(directory, draft)
    await _check_unique(conn, directory, draft)
    at = moment()
    user = replace(draft, id=new_object_id(), stamp=Stamp(created_at=at, updated_at=at))
    user = replace(user, user_id=await _account_of(conn, directory, user))
    await membership.hold(conn, directory, user.user_id)
    await store.add(conn, directory, user)
    await _record(conn, directory, "scim-user.create", user)
    if user.user_id is not None:
        # Whoever is provisioned as inactive must not stay what they were before.
        await _settle(conn, directory, user, was_active=not user.active)
    return user


async def update(
    conn: Connection, directory: Directory, before: ScimUser, draft: ScimUser
) -> ScimUser:
    """Take over what the provider says of a user, and let the account and its place follow."""
    rules.check(directory, draft)
    await _check_unique(conn, directory, draft)
    account_id = before.user_id or await _account_of(conn, directory, draft, before=before)
    await membership.hold(conn, directory, account_id)
    user = replace(
        draft,
        user_id=account_id,
        kept=await to_keep(conn, directory, before, stays=draft.active),
        stamp=replace(before.stamp, updated_at=moment(), version=before.stamp.version + 1),
    )
    # Before the membership changes: what that sets off finds the user as it is to be.
    if not await store.update(conn, user, version=before.stamp.version):
        raise _changed(before)
    await _record(conn, directory, "scim-user.update", user)
    if user.user_id is not None:
        if directory.managed:
            account = await accounts.get_user_by_id(conn, user.user_id)
            await managed.follow(conn, account, user)
        was_active = before.active if before.user_id else not user.active
        await _settle(conn, directory, user, was_active=was_active)
    return user


async def delete(conn: Connection, directory: Directory, user: ScimUser) -> None:
    """Forget a user. A managed account is kept, switched off, for what it wrote."""
    await membership.hold(conn, directory, user.user_id)
    await store.leave_groups(conn, user.id, at=moment())
    if not await store.remove(conn, user.id, version=user.stamp.version):
        raise _changed(user)
    await _record(conn, directory, "scim-user.delete", user)
    if user.user_id is None:
        return
    if user.active:
        await membership.leave(conn, directory, user.user_id)
    if directory.managed:
        account = await accounts.get_user_by_id(conn, user.user_id)
        await managed.free_addresses(conn, account)


def _changed(user: ScimUser) -> ScimRefusal:
    """Say that a user is not the one any more that was read before the change."""
    return ScimRefusal(412, f"The user {user.id} was changed at the same time: try again.")


async def _settle(
    conn: Connection, directory: Directory, user: ScimUser, *, was_active: bool
) -> None:
    """Bring the membership in line with what the provider says."""
    account_id = user.user_id or ""
    if user.active and not was_active:
        await membership.join(conn, directory, account_id, kept=user.kept)
        await roles.settle_user(conn, directory, user)
        await _record(conn, directory, "scim-user.activate", user)
    if not user.active and was_active:
        await membership.leave(conn, directory, account_id)
        await _record(conn, directory, "scim-user.deactivate", user)


async def let_in(conn: Connection, directory: Directory, scim_user_id: str) -> None:
    """Let an invited user in who still waits, if somebody has an account with the address."""
    # As whoever answers the provider does: each reads what the other has written.
    await hold(conn, directory)
    user = await store.find(conn, directory, scim_user_id)
    if user is None or user.user_id is not None or not user.active:
        return
    try:
        account_id = await _account_of(conn, directory, user, before=user)
    except ScimRefusal:
        # The person is here as another user.
        return
    if account_id is not None:
        await update(conn, directory, user, user)


async def _account_of(
    conn: Connection, directory: Directory, user: ScimUser, *, before: ScimUser | None = None
) -> str | None:
    if directory.managed:
        return (await managed.open_account(conn, directory, user)).id
    account_id = await accounts_store.find_account_id(conn, waiting.addresses_of(user))
    if account_id is None:
        await waiting.check_alone(conn, directory, user, before=before)
        return None
    other = await store.find_by_account(conn, directory, account_id)
    if other is not None and other.id != user.id:
        raise taken("emails: the account with this address is provisioned as another user.")
    return account_id


async def _check_unique(conn: Reader, directory: Directory, user: ScimUser) -> None:
    found = await store.find_by_user_name(conn, directory, user.user_name)
    if found is not None and found.id != user.id:
        raise taken(f"userName: the name {user.user_name} is taken.")
    if user.external_id is None:
        return
    found = await store.find_by_external_id(conn, directory, user.external_id)
    if found is not None and found.id != user.id:
        raise taken("externalId: another user has this value.")


async def _record(conn: Connection, directory: Directory, action: str, user: ScimUser) -> None:
    await audit.record(
        conn, directory.organization.id, directory.actor, action, target=user.user_name,
        details={"scim_id": user.id, "managed": directory.managed, "active": user.active},
    )  # fmt: skip


def moment() -> int:
    """Return now, as exactly as answers show it: a filter compares with what was shown."""
    return micros() // 1000 * 1000
