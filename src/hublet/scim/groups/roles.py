"""Gives members the roles that their groups are worth."""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from hublet.accounts import service as accounts
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role, User
from hublet.accounts.resource_groups import service as resource_groups
from hublet.accounts.resource_groups.errors import NotInResourceGroup
from hublet.accounts.resource_groups.members import service as group_members
from hublet.core.database import Connection
from hublet.scim.accounts.membership import LEAST_ROLE
from hublet.scim.groups import store
from hublet.scim.groups.mapping import Place, highest
from hublet.scim.records import Directory, ScimUser


async def settle_user(conn: Connection, directory: Directory, user: ScimUser) -> None:
    """Give somebody who came the roles of their groups; what no group gives stays."""
    names = await store.list_names_by_user(conn, [user.id])
    given = _given(directory, names.get(user.id, []))
    await _give(conn, directory, user, given, places=given)


async def settle(
    conn: Connection, directory: Directory, users: Sequence[ScimUser], *, places: Iterable[Place]
) -> None:
    """Give users the highest role of the groups they are in now, in places that have changed.

    Where no group is left, somebody is an ordinary member, and in a resource group none.
    """
    places = tuple(places)
    if not places:
        return
    names = await store.list_names_by_user(conn, [user.id for user in users])
    for user in users:
        given = _given(directory, names.get(user.id, []))
        await _give(conn, directory, user, given, places=places)


def _given(directory: Directory, names: list[str]) -> dict[Place, Role]:
    return highest(names, organization=directory.organization.name)


async def _give(
    conn: Connection,
    directory: Directory,
    user: ScimUser,
    given: dict[Place, Role],
    *,
    places: Iterable[Place],
) -> None:
    # Who waits for an account or is not active has no roles; they come with the membership.
    if user.user_id is None or not user.active:
        return
    account = await accounts.get_user_by_id(conn, user.user_id)
    for place in places:
        if place is None:
            await organizations.set_member(
                conn,
                directory.actor,
                directory.organization,
                account,
                given.get(None, LEAST_ROLE),
            )
        else:
            await _give_in_group(conn, directory, account, place, given.get(place))


async def _give_in_group(
    conn: Connection, directory: Directory, account: User, name: str, role: Role | None
) -> None:
    organization, actor = directory.organization, directory.actor
    group_id = await store.find_resource_group_id(conn, organization_id=organization.id, name=name)
    if group_id is None:
        return
    group = await resource_groups.get(conn, organization, group_id)
    if role is not None:
        await group_members.set_member(conn, actor, organization, group, account, role)
        return
    with suppress(NotInResourceGroup):
        await group_members.remove_member(conn, actor, group, account)
