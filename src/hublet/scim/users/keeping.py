"""What somebody comes back to: the roles that were given by hand."""

from hublet.core.database import Reader
from hublet.scim.accounts import store as accounts
from hublet.scim.groups import store as groups
from hublet.scim.groups.mapping import highest
from hublet.scim.records import Directory, KeptRoles, ScimUser


async def to_keep(
    conn: Reader, directory: Directory, before: ScimUser, *, stays: bool
) -> KeptRoles:
    """Return the roles to come back to; they are looked at when somebody goes."""
    if before.user_id is None or stays or not before.active:
        return before.kept
    return await _given_by_hand(conn, directory, before, user_id=before.user_id)


async def _given_by_hand(
    conn: Reader, directory: Directory, user: ScimUser, *, user_id: str
) -> KeptRoles:
    """Return the roles but for those that groups give: who comes back is in other groups perhaps."""
    organization = directory.organization
    held = await accounts.roles_of(conn, organization_id=organization.id, user_id=user_id)
    names = await groups.list_names_by_user(conn, [user.id])
    given = highest(names.get(user.id, []), organization=organization.name)
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
