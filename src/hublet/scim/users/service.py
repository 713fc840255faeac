"""Rules of provisioned users: creating, changing, deleting; the roles they come back to."""

from dataclasses import replace

from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.users import service as accounts
from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.scim import directory as scim_directory
from hublet.scim import groups_store as groups
from hublet.scim.directory import lock
from hublet.scim.errors import ScimRefusal, not_unique
from hublet.scim.records import Directory, KeptRoles, ProvisionedUser, Stamp
from hublet.scim.users import accounts as users_accounts
from hublet.scim.users import accounts_store, roles, store
from hublet.scim.users import invitations as waiting
from hublet.scim.users.roles import highest_roles


async def _roles_to_keep(
    conn: Reader, directory: Directory, before: ProvisionedUser, *, stays: bool
) -> KeptRoles:
    """Return the roles to come back to; they are looked at when somebody goes."""
    if before.user_id is None or stays or not before.active:
        return before.kept
    return await _roles_given_by_hand(conn, directory, before, user_id=before.user_id)


async def _roles_given_by_hand(
    conn: Reader, directory: Directory, user: ProvisionedUser, *, user_id: str
) -> KeptRoles:
    """Return the roles but for those that groups give: who comes back is in other groups perhaps."""
    organization = directory.organization
    held = await accounts_store.roles_of(conn, organization_id=organization.id, user_id=user_id)
    names = await groups.list_names_by_user(conn, [user.id])
    given = highest_roles(names.get(user.id, []), organization=organization.name)
    given_in = {
        await groups.find_resource_group_id(conn, organization_id=organization.id, name=place)
        for place in given
        if place is not None
    }
    return KeptRoles(
        role=None if None in given else held.role,
        resource_groups={
            group_id: role
            for group_id, role in held.resource_groups.items()
            if group_id not in given_in
        },
    )


async def get(conn: Reader, directory: Directory, scim_user_id: str) -> ProvisionedUser:
    user = await store.find(conn, directory, scim_user_id)
    if user is None:
        raise ScimRefusal(404, f"There is no user {scim_user_id} in this directory.")
    return user


async def create(conn: Connection, directory: Directory, draft: ProvisionedUser) -> ProvisionedUser:
    """Provision a user: a managed account, a member, or an invitation that waits for an account."""
    scim_directory.check_user(directory, draft)
    await _check_unique(conn, directory, draft)
    at = current_time()
    user = replace(draft, id=new_object_id(), stamp=Stamp(created_at=at, updated_at=at))
    user = replace(user, user_id=await _account_of(conn, directory, user))
    await users_accounts.lock_membership(conn, directory, user.user_id)
    await store.add(conn, directory, user)
    await _record_in_audit_log(conn, directory, "scim-user.create", user)
    if user.user_id is not None:
        # Whoever is provisioned as inactive must not stay what they were before.
        await _apply_membership(conn, directory, user, was_active=not user.active)
    return user


async def update(
    conn: Connection, directory: Directory, before: ProvisionedUser, draft: ProvisionedUser
) -> ProvisionedUser:
    """Take over what the provider says of a user, and let the account and its place follow."""
    scim_directory.check_user(directory, draft)
    await _check_unique(conn, directory, draft)
    account_id = before.user_id or await _account_of(conn, directory, draft, before=before)
    await users_accounts.lock_membership(conn, directory, account_id)
    user = replace(
        draft,
        user_id=account_id,
        kept=await _roles_to_keep(conn, directory, before, stays=draft.active),
        stamp=replace(before.stamp, updated_at=current_time(), version=before.stamp.version + 1),
    )
    # Before the membership changes: what that sets off finds the user as it is to be.
    if not await store.update(conn, user, version=before.stamp.version):
        raise _conflict(before)
    await _record_in_audit_log(conn, directory, "scim-user.update", user)
    if user.user_id is not None:
        if directory.managed:
            account = await accounts.get_user_by_id(conn, user.user_id)
            await users_accounts.sync_managed(conn, account, user)
        was_active = before.active if before.user_id else not user.active
        await _apply_membership(conn, directory, user, was_active=was_active)
    return user


async def delete(conn: Connection, directory: Directory, user: ProvisionedUser) -> None:
    """Forget a user. A managed account is kept, switched off, for what it wrote."""
    await users_accounts.lock_membership(conn, directory, user.user_id)
    await store.leave_groups(conn, user.id, at=current_time())
    if not await store.remove(conn, user.id, version=user.stamp.version):
        raise _conflict(user)
    await _record_in_audit_log(conn, directory, "scim-user.delete", user)
    if user.user_id is None:
        return
    if user.active:
        await users_accounts.leave(conn, directory, user.user_id)
    if directory.managed:
        account = await accounts.get_user_by_id(conn, user.user_id)
        await users_accounts.free_addresses(conn, account)


def _conflict(user: ProvisionedUser) -> ScimRefusal:
    """Say that a user is not the one any more that was read before the change."""
    return ScimRefusal(412, f"The user {user.id} was changed at the same time: try again.")


async def _apply_membership(
    conn: Connection, directory: Directory, user: ProvisionedUser, *, was_active: bool
) -> None:
    """Bring the membership in line with what the provider says."""
    account_id = user.user_id or ""
    if user.active and not was_active:
        await users_accounts.join(conn, directory, account_id, kept=user.kept)
        await roles.apply_to_user(conn, directory, user)
        await _record_in_audit_log(conn, directory, "scim-user.activate", user)
    if not user.active and was_active:
        await users_accounts.leave(conn, directory, account_id)
        await _record_in_audit_log(conn, directory, "scim-user.deactivate", user)


async def accept_invitation(conn: Connection, directory: Directory, scim_user_id: str) -> None:
    """Let an invited user in who still waits, if somebody has an account with the address."""
    # As whoever answers the provider does: each reads what the other has written.
    await lock(conn, directory)
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
    conn: Connection,
    directory: Directory,
    user: ProvisionedUser,
    *,
    before: ProvisionedUser | None = None,
) -> str | None:
    if directory.managed:
        return (await users_accounts.open_managed(conn, directory, user)).id
    account_id = await accounts_store.find_account_id(conn, waiting.addresses_of(user))
    if account_id is None:
        await waiting.check_only_invitation(conn, directory, user, before=before)
        return None
    other = await store.find_by_account(conn, directory, account_id)
    if other is not None and other.id != user.id:
        raise not_unique("emails: the account with this address is provisioned as another user.")
    return account_id


async def _check_unique(conn: Reader, directory: Directory, user: ProvisionedUser) -> None:
    found = await store.find_by_user_name(conn, directory, user.user_name)
    if found is not None and found.id != user.id:
        raise not_unique(f"userName: the name {user.user_name} is taken.")
    if user.external_id is None:
        return
    found = await store.find_by_external_id(conn, directory, user.external_id)
    if found is not None and found.id != user.id:
        raise not_unique("externalId: another user has this value.")


async def _record_in_audit_log(
    conn: Connection, directory: Directory, action: str, user: ProvisionedUser
) -> None:
    await audit.record(
        conn, directory.organization.id, directory.actor, action, target=user.user_name,
        details={"scim_id": user.id, "managed": directory.managed, "active": user.active},
    )  # fmt: skip


def current_time() -> int:
    """Return now, as exactly as answers show it: a filter compares with what was shown."""
    return micros() // 1000 * 1000
