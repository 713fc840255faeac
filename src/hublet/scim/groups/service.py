"""Rules of provisioned groups."""

from collections.abc import Sequence
from dataclasses import replace

from hublet.accounts.audit import service as audit
from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.scim.errors import ScimRefusal, invalid_value, taken
from hublet.scim.groups import roles, store
from hublet.scim.groups.mapping import Place, grant_of
from hublet.scim.records import Directory, ScimGroup, ScimUser, Stamp
from hublet.scim.users import store as users
from hublet.scim.users.rules import check_external_id

LONGEST_NAME = 255
MAX_MEMBERS = 20_000


async def get(
    conn: Reader, directory: Directory, group_id: str, *, with_members: bool = True
) -> ScimGroup:
    group = await store.find(conn, directory, group_id, with_members=with_members)
    if group is None:
        raise ScimRefusal(404, f"There is no group {group_id} in this directory.")
    return group


async def create(conn: Connection, directory: Directory, draft: ScimGroup) -> ScimGroup:
    await _check(conn, directory, draft)
    at = micros() // 1000 * 1000
    group = replace(draft, id=new_object_id(), stamp=Stamp(created_at=at, updated_at=at))
    await store.add(conn, directory, group)
    await _record(conn, directory, "scim-group.create", group)
    await _set_members(conn, directory, before=replace(group, members=()), after=group)
    return await get(conn, directory, group.id)


async def update(
    conn: Connection, directory: Directory, before: ScimGroup, draft: ScimGroup
) -> ScimGroup:
    """Take over what the provider says of a group, and let the roles of its members follow."""
    await _check(conn, directory, draft)
    at = micros() // 1000 * 1000
    stamp = replace(before.stamp, updated_at=at, version=before.stamp.version + 1)
    group = replace(draft, id=before.id, stamp=stamp)
    await store.update(conn, group)
    await _record(conn, directory, "scim-group.update", group)
    await _set_members(conn, directory, before=before, after=group)
    return await get(conn, directory, group.id)


async def delete(conn: Connection, directory: Directory, group: ScimGroup) -> None:
    members = await users.list_members(conn, directory, group.id)
    await store.remove(conn, group.id)
    await _record(conn, directory, "scim-group.delete", group)
    await roles.settle(conn, directory, members, places=_places(directory, group))


async def _set_members(
    conn: Connection, directory: Directory, *, before: ScimGroup, after: ScimGroup
) -> None:
    had = {member.id for member in before.members}
    wanted = {member.id for member in after.members}
    added = await _get_users(conn, directory, sorted(wanted - had))
    gone = await users.list_by_ids(conn, directory, had - wanted)
    await store.add_members(conn, after.id, [user.id for user in added])
    await store.remove_members(conn, after.id, [user.id for user in gone])
    places = _places(directory, before, after)
    stayed: Sequence[ScimUser] = ()
    if before.display_name != after.display_name:
        stayed = await users.list_by_ids(conn, directory, had & wanted)
    await roles.settle(conn, directory, [*added, *gone, *stayed], places=places)


async def _get_users(conn: Reader, directory: Directory, ids: Sequence[str]) -> Sequence[ScimUser]:
    found = await users.list_by_ids(conn, directory, ids)
    if missing := sorted(set(ids) - {user.id for user in found}):
        raise invalid_value(f"members: there is no user {missing[0][:64]} in this directory.")
    return found


def _places(directory: Directory, *groups: ScimGroup) -> set[Place]:
    grants = [
        grant_of(group.display_name, organization=directory.organization.name) for group in groups
    ]
    return {grant.place for grant in grants if grant is not None}


async def _check(conn: Reader, directory: Directory, group: ScimGroup) -> None:
    if not 0 < len(group.display_name.strip()) <= len(group.display_name) <= LONGEST_NAME:
        raise invalid_value(f"displayName must have 1 to {LONGEST_NAME} characters.")
    check_external_id(group.external_id)
    if len(group.members) > MAX_MEMBERS:
        raise invalid_value(f"members must have at most {MAX_MEMBERS} items.")
    found = await store.find_by_display_name(conn, directory, group.display_name)
    if found is not None and found.id != group.id:
        raise taken(f"displayName: there is a group {group.display_name} already.")
    if group.external_id is None:
        return
    found = await store.find_by_external_id(conn, directory, group.external_id)
    if found is not None and found.id != group.id:
        raise taken("externalId: another group has this value.")


async def _record(conn: Connection, directory: Directory, action: str, group: ScimGroup) -> None:
    await audit.record(
        conn, directory.organization.id, directory.actor, action, target=group.display_name,
        details={"scim_id": group.id, "managed": directory.managed, "members": len(group.members)},
    )  # fmt: skip
