"""Rules of provisioned groups: their members, and the roles that follow from them."""

import asyncio
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from hublet.accounts.organizations import audit_store as audit
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.scim import groups_store
from hublet.scim.directory import check_external_id, check_length, current_time
from hublet.scim.errors import ScimRefusal, invalid_value, not_unique
from hublet.scim.member_changes import MemberChange, MemberOperation, members_after
from hublet.scim.records import Directory, ProvisionedGroup, Stamp
from hublet.scim.users import roles
from hublet.scim.users import store as users
from hublet.scim.users.roles import RolePlace, grant_of

MAX_DISPLAY_NAME_LENGTH = 255
MAX_MEMBERS = 20_000

# How many users get their roles before other tasks of the event loop get their turn.
_BATCH_SIZE = 100


async def get(
    conn: Reader, directory: Directory, group_id: str, *, with_members: bool = True
) -> ProvisionedGroup:
    group = await groups_store.find(conn, directory, group_id, with_members=with_members)
    if group is None:
        raise ScimRefusal(404, f"There is no group {group_id} in this directory.")
    return group


async def create(
    conn: Connection, directory: Directory, draft: ProvisionedGroup
) -> ProvisionedGroup:
    group = await add(conn, directory, draft, [_replace_members(draft)])
    return await get(conn, directory, group.id)


async def add(
    conn: Connection, directory: Directory, draft: ProvisionedGroup, changes: Sequence[MemberChange]
) -> ProvisionedGroup:
    """Create a group with the members that the changes result in; they are not read back."""
    members = members_after(changes, set())
    await _check(conn, directory, draft, members)
    at = current_time()
    stamp = Stamp(created_at=at, updated_at=at)
    group = replace(draft, id=new_object_id(), members=(), stamp=stamp)
    await groups_store.add(conn, directory, group)
    await _record_in_audit_log(conn, directory, "scim-group.create", group, len(members))
    await _set_members(conn, directory, before=group, after=group, had=frozenset(), members=members)
    return group


async def update(
    conn: Connection, directory: Directory, before: ProvisionedGroup, draft: ProvisionedGroup
) -> ProvisionedGroup:
    """Write a group as the provider sends it, and update the roles of its members."""
    await _write(conn, directory, before, draft, had=_ids(before), members=_ids(draft))
    return await get(conn, directory, before.id)


async def change(
    conn: Connection,
    directory: Directory,
    before: ProvisionedGroup,
    draft: ProvisionedGroup,
    changes: Sequence[MemberChange],
) -> ProvisionedGroup:
    """Update a group that was read without members; write nothing if nothing changes."""
    had = await groups_store.list_member_ids(conn, before.id)
    members = members_after(changes, had)
    if draft == before and members == had:
        return before
    return await _write(conn, directory, before, draft, had=had, members=members)


async def _write(
    conn: Connection,
    directory: Directory,
    before: ProvisionedGroup,
    draft: ProvisionedGroup,
    *,
    had: frozenset[str],
    members: frozenset[str],
) -> ProvisionedGroup:
    await _check(conn, directory, draft, members)
    at = current_time()
    stamp = replace(before.stamp, updated_at=at, version=before.stamp.version + 1)
    group = replace(draft, id=before.id, members=(), stamp=stamp)
    await groups_store.update(conn, group)
    await _record_in_audit_log(conn, directory, "scim-group.update", group, len(members))
    await _set_members(conn, directory, before=before, after=group, had=had, members=members)
    return group


async def delete(conn: Connection, directory: Directory, group: ProvisionedGroup) -> None:
    members = await groups_store.list_member_ids(conn, group.id)
    await groups_store.remove(conn, group.id)
    await _record_in_audit_log(conn, directory, "scim-group.delete", group, len(members))
    await _apply_roles(conn, directory, sorted(members), places=_places(directory, group))


async def _set_members(
    conn: Connection,
    directory: Directory,
    *,
    before: ProvisionedGroup,
    after: ProvisionedGroup,
    had: frozenset[str],
    members: frozenset[str],
) -> None:
    added, removed = sorted(members - had), sorted(had - members)
    await _check_known(conn, directory, added)
    await groups_store.add_members(conn, after.id, added)
    await groups_store.remove_members(conn, after.id, removed)
    renamed = before.display_name != after.display_name
    changed = [*added, *removed, *(sorted(had & members) if renamed else ())]
    await _apply_roles(conn, directory, changed, places=_places(directory, before, after))


async def _apply_roles(
    conn: Connection, directory: Directory, ids: Sequence[str], *, places: set[RolePlace]
) -> None:
    """Update the roles of users in batches, if the group gave or gives any: there may be thousands."""
    for start in range(0, len(ids) if places else 0, _BATCH_SIZE):
        batch = await users.list_by_ids(conn, directory, ids[start : start + _BATCH_SIZE])
        await roles.apply_to_users(conn, directory, batch, places=places)
        # Other tasks of the event loop get their turn.
        await asyncio.sleep(0)


async def _check_known(conn: Reader, directory: Directory, ids: Sequence[str]) -> None:
    if missing := sorted(set(ids) - await groups_store.list_known_users(conn, directory, ids)):
        raise invalid_value(f"members: there is no user {missing[0][:64]} in this directory.")


def _ids(group: ProvisionedGroup) -> frozenset[str]:
    return frozenset(member.id for member in group.members)


def _replace_members(group: ProvisionedGroup) -> MemberChange:
    return MemberChange(op=MemberOperation.replace, ids=_ids(group))


def _places(directory: Directory, *groups: ProvisionedGroup) -> set[RolePlace]:
    grants = [
        grant_of(group.display_name, organization=directory.organization.name) for group in groups
    ]
    return {grant.place for grant in grants if grant is not None}


async def _check(
    conn: Reader, directory: Directory, group: ProvisionedGroup, members: AbstractSet[str]
) -> None:
    check_length("displayName", group.display_name, longest=MAX_DISPLAY_NAME_LENGTH)
    check_external_id(group.external_id)
    if len(members) > MAX_MEMBERS:
        raise invalid_value(f"members must have at most {MAX_MEMBERS} items.")
    other = await groups_store.find_by_display_name(conn, directory, group.display_name)
    if other is not None and other.id != group.id:
        raise not_unique(f"displayName: there is a group {group.display_name} already.")
    if group.external_id is None:
        return
    other = await groups_store.find_by_external_id(conn, directory, group.external_id)
    if other is not None and other.id != group.id:
        raise not_unique("externalId: another group has this value.")


async def _record_in_audit_log(
    conn: Connection, directory: Directory, action: str, group: ProvisionedGroup, members: int
) -> None:
    await audit.record(
        conn, directory.organization.id, directory.actor, action, target=group.display_name,
        details={"scim_id": group.id, "managed": directory.managed, "members": members},
    )  # fmt: skip
