"""Rules of provisioned users: creating, changing, deleting and inviting them.

An invitation is a user without an account, who joins once an account has the address.
"""

from dataclasses import replace

from hublet.accounts.errors import InvalidEmail
from hublet.accounts.names import check_email
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.records import Organization, User
from hublet.accounts.resource_groups import store as resource_groups
from hublet.accounts.users import service as hub_accounts
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.scim import groups_store
from hublet.scim.directory import check_user, current_time, lock
from hublet.scim.errors import MemberProvisioned, ScimRefusal, not_unique
from hublet.scim.records import (
    Directory,
    FormerRoles,
    IdentifierHolders,
    ProvisionedUser,
    Stamp,
    comparison_key,
)
from hublet.scim.users import accounts, roles, store


async def get(conn: Reader, directory: Directory, scim_user_id: str) -> ProvisionedUser:
    user = await store.find(conn, directory, scim_user_id)
    if user is None:
        raise ScimRefusal(404, f"There is no user {scim_user_id} in this directory.")
    return user


async def create(conn: Connection, directory: Directory, draft: ProvisionedUser) -> ProvisionedUser:
    """Provision a user: a managed account, a member, or an invitation that waits for an account."""
    check_user(directory, draft)
    known = await _check_unique(conn, directory, draft)
    at = current_time()
    user = replace(draft, id=new_object_id(), stamp=Stamp(created_at=at, updated_at=at))
    if directory.managed:
        if known.abandoned_account is None:
            return await _create_with_account(conn, directory, user)
        await accounts.reuse_managed(conn, known.abandoned_account, user)
        user = replace(user, user_id=known.abandoned_account)
    else:
        user = replace(user, user_id=await _account_of(conn, directory, user))
    await accounts.lock_membership(conn, directory, user.user_id)
    await store.add(conn, directory, user)
    await _record_in_audit_log(conn, directory, "scim-user.create", user)
    if user.user_id is not None:
        # A user who is provisioned as inactive must not keep a membership from before.
        await _apply_membership(conn, directory, user, was_active=not user.active)
    return user


async def _create_with_account(
    conn: Connection, directory: Directory, user: ProvisionedUser
) -> ProvisionedUser:
    """Create a managed user and the account: nobody knows either before the commit.

    So there is nothing to look for or to lock: no membership, no roles, no groups, no ban.
    """
    account = await accounts.create_managed(conn, directory, user)
    user = replace(user, user_id=account.id)
    await store.add(conn, directory, user)
    await _record_in_audit_log(conn, directory, "scim-user.create", user)
    if user.active:
        await accounts.join_with_new_account(conn, directory, account)
        await _record_in_audit_log(conn, directory, "scim-user.activate", user)
    else:
        await _apply_membership(conn, directory, user, was_active=True)
    return user


async def update(
    conn: Connection, directory: Directory, before: ProvisionedUser, draft: ProvisionedUser
) -> ProvisionedUser:
    """Write a user as the provider sends it, and update the account and its membership."""
    check_user(directory, draft)
    await _check_unique(conn, directory, draft)
    account_id = before.user_id or await _account_of(conn, directory, draft, before=before)
    await accounts.lock_membership(conn, directory, account_id)
    user = replace(
        draft,
        user_id=account_id,
        former_roles=await _roles_to_restore(conn, directory, before, stays=draft.active),
        stamp=replace(before.stamp, updated_at=current_time(), version=before.stamp.version + 1),
    )
    # Before the membership changes: reactions to that must find the user as it will be.
    if not await store.update(conn, user, version=before.stamp.version):
        raise _conflict(before)
    await _record_in_audit_log(conn, directory, "scim-user.update", user)
    if user.user_id is not None:
        if directory.managed:
            account = await hub_accounts.get_user_by_id(conn, user.user_id)
            await accounts.sync_managed(conn, account, user)
        was_active = before.active if before.user_id else not user.active
        await _apply_membership(conn, directory, user, was_active=was_active)
    return user


async def delete(conn: Connection, directory: Directory, user: ProvisionedUser) -> None:
    """Delete a user. A managed account stays, disabled, as the author of what it wrote."""
    await accounts.lock_membership(conn, directory, user.user_id)
    await store.leave_groups(conn, user.id, at=current_time())
    if not await store.remove(conn, user.id, version=user.stamp.version):
        raise _conflict(user)
    await _record_in_audit_log(conn, directory, "scim-user.delete", user)
    if user.user_id is None:
        return
    if user.active:
        await accounts.leave(conn, directory, user.user_id)
    if directory.managed:
        account = await hub_accounts.get_user_by_id(conn, user.user_id)
        await accounts.free_addresses(conn, account)


async def accept_invitation(conn: Connection, directory: Directory, scim_user_id: str) -> None:
    """Make an invited user a member, if an account has the address by now."""
    # The same lock as for requests of the provider: each reads what the other has written.
    await lock(conn, directory)
    user = await store.find(conn, directory, scim_user_id)
    if user is None or user.user_id is not None or not user.active:
        return
    try:
        account_id = await _account_of(conn, directory, user, before=user)
    except ScimRefusal:
        # The account is provisioned as another user.
        return
    if account_id is not None:
        await update(conn, directory, user, user)


async def check_not_provisioned(conn: Reader, organization: Organization, account: User) -> None:
    """Refuse to change by hand in the browser what an identity provider would change back."""
    if await store.list_provisioned(conn, organization.id, [account.id]):
        raise MemberProvisioned(account.name, organization.name)


async def _account_of(
    conn: Connection,
    directory: Directory,
    user: ProvisionedUser,
    *,
    before: ProvisionedUser | None = None,
) -> str | None:
    """Return a person's own account; None for an invitation, which waits for one."""
    account_id = await store.find_account_id(conn, _addresses_of(user))
    if account_id is None:
        await _check_only_invitation(conn, directory, user, before=before)
        return None
    other = await store.find_by_account(conn, directory, account_id)
    if other is not None and other.id != user.id:
        raise not_unique("emails: the account with this address is provisioned as another user.")
    return account_id


def _addresses_of(user: ProvisionedUser) -> list[str]:
    """Return the e-mail addresses of the person, the primary one first.

    Providers often send one in userName too.
    """
    ordered = sorted(user.emails, key=lambda each: not each.primary)
    addresses = [address.value for address in ordered]
    try:
        check_email(user.user_name)
    except InvalidEmail:
        return addresses
    return [*addresses, user.user_name]


async def _check_only_invitation(
    conn: Reader, directory: Directory, user: ProvisionedUser, *, before: ProvisionedUser | None
) -> None:
    """Refuse a second user who is to wait for the same address: only one of them could join.

    Addresses that the user had before are no reason to refuse a change of something else.
    """
    if not user.active:
        return
    addresses = {comparison_key(each) for each in _addresses_of(user)}
    if before is not None and before.active:
        addresses -= {comparison_key(each) for each in _addresses_of(before)}
    if await store.is_invited(conn, directory, addresses, except_for=user.id):
        raise not_unique(
            "emails: another user of this directory waits for an account with the address."
        )


async def _check_unique(
    conn: Reader, directory: Directory, user: ProvisionedUser
) -> IdentifierHolders:
    holders = await store.find_holders(conn, directory, user)
    if holders.user_name not in {None, user.id}:
        raise not_unique(f"userName: the name {user.user_name} is taken.")
    if holders.external_id not in {None, user.id}:
        raise not_unique("externalId: another user has this value.")
    return holders


async def _apply_membership(
    conn: Connection, directory: Directory, user: ProvisionedUser, *, was_active: bool
) -> None:
    """Start or end the membership as the provider says."""
    account_id = user.user_id or ""
    if user.active and not was_active:
        await accounts.join(conn, directory, account_id, former=user.former_roles)
        await roles.apply_to_user(conn, directory, user)
        await _record_in_audit_log(conn, directory, "scim-user.activate", user)
    if not user.active and was_active:
        await accounts.leave(conn, directory, account_id)
        await _record_in_audit_log(conn, directory, "scim-user.deactivate", user)


async def _roles_to_restore(
    conn: Reader, directory: Directory, before: ProvisionedUser, *, stays: bool
) -> FormerRoles:
    """Return the roles to restore on return; they are read when the user leaves."""
    if before.user_id is None or stays or not before.active:
        return before.former_roles
    return await _roles_given_by_hand(conn, directory, before, user_id=before.user_id)


async def _roles_given_by_hand(
    conn: Reader, directory: Directory, user: ProvisionedUser, *, user_id: str
) -> FormerRoles:
    """Return the roles that no group gives: on return the user may be in other groups."""
    organization = directory.organization
    held = await accounts.roles_of(conn, organization, user_id)
    names = await groups_store.list_names_by_user(conn, [user.id])
    given = roles.highest_roles(names.get(user.id, []), organization=organization.name)
    groups = [
        await resource_groups.find_by_name(conn, place, organization_id=organization.id)
        for place in given
        if place is not None
    ]
    given_in = {group.id for group in groups if group is not None}
    return FormerRoles(
        role=None if None in given else held.role,
        resource_groups={
            group_id: role
            for group_id, role in held.resource_groups.items()
            if group_id not in given_in
        },
    )


def _conflict(user: ProvisionedUser) -> ScimRefusal:
    """Return the refusal of a change whose user was changed by another request meanwhile."""
    return ScimRefusal(412, f"The user {user.id} was changed at the same time: try again.")


async def _record_in_audit_log(
    conn: Connection, directory: Directory, action: str, user: ProvisionedUser
) -> None:
    await audit.record(
        conn, directory.organization.id, directory.actor, action, target=user.user_name,
        details={"scim_id": user.id, "managed": directory.managed, "active": user.active},
    )  # fmt: skip
