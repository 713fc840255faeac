"""Roles that groups give: a group's name says which role its members have, and where.

`acme:write` is the role write in the organization acme, `acme:research:admin` the role admin in
its resource group research. A group of any other name gives no role.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from hublet.accounts.errors import NotInResourceGroup
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role, User
from hublet.accounts.resource_groups import service as resource_groups
from hublet.accounts.resource_groups import store as resource_groups_store
from hublet.accounts.users import service as accounts
from hublet.core.database import Connection
from hublet.core.dataclasses import dataclass
from hublet.scim import groups_store
from hublet.scim.records import Directory, ProvisionedUser
from hublet.scim.users.accounts import DEFAULT_ROLE

# Where a role holds: the name of a resource group, or None for the organization itself.
RolePlace = str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleGrant:
    place: RolePlace
    role: Role


def grant_of(display_name: str, *, organization: str) -> RoleGrant | None:
    """Return the role that a group of this name gives in the organization; case does not count."""
    first, _, rest = display_name.casefold().partition(":")
    place, _, role = rest.rpartition(":")
    if first.strip() != organization.casefold() or role.strip() not in set(Role):
        return None
    if ":" in rest and not place.strip():
        return None
    return RoleGrant(place=place.strip() or None, role=Role(role.strip()))


def highest_roles(display_names: Iterable[str], *, organization: str) -> dict[RolePlace, Role]:
    """Return the highest role that groups of these names give, in each place."""
    best: dict[RolePlace, Role] = {}
    for name in display_names:
        grant = grant_of(name, organization=organization)
        if grant is not None and not (grant.place in best and best[grant.place].covers(grant.role)):
            best[grant.place] = grant.role
    return best


async def apply_to_user(conn: Connection, directory: Directory, user: ProvisionedUser) -> None:
    """Give a new member the roles of the groups; roles that no group gives stay."""
    names = await groups_store.list_names_by_user(conn, [user.id])
    given = _roles_of_groups(directory, names.get(user.id, []))
    await _apply(conn, directory, user, given, places=given)


async def apply_to_users(
    conn: Connection,
    directory: Directory,
    users: Sequence[ProvisionedUser],
    *,
    places: Iterable[RolePlace],
) -> None:
    """Give users the highest role of the groups they are in now, in places that have changed.

    Without a group left, the user is an ordinary member, or is removed from the resource group.
    """
    places = tuple(places)
    if not places:
        return
    names = await groups_store.list_names_by_user(conn, [user.id for user in users])
    for user in users:
        given = _roles_of_groups(directory, names.get(user.id, []))
        await _apply(conn, directory, user, given, places=places)


def _roles_of_groups(directory: Directory, names: list[str]) -> dict[RolePlace, Role]:
    return highest_roles(names, organization=directory.organization.name)


async def _apply(
    conn: Connection,
    directory: Directory,
    user: ProvisionedUser,
    given: dict[RolePlace, Role],
    *,
    places: Iterable[RolePlace],
) -> None:
    # Invited and inactive users have no roles; roles come with the membership.
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
                given.get(None, DEFAULT_ROLE),
            )
        else:
            await _apply_in_resource_group(conn, directory, account, place, given.get(place))


async def _apply_in_resource_group(
    conn: Connection, directory: Directory, account: User, name: str, role: Role | None
) -> None:
    organization, actor = directory.organization, directory.actor
    group = await resource_groups_store.find_by_name(conn, name, organization_id=organization.id)
    if group is None:
        return
    if role is not None:
        await resource_groups.set_member(conn, actor, organization, group, account, role)
        return
    with suppress(NotInResourceGroup):
        await resource_groups.remove_member(conn, actor, group, account)
