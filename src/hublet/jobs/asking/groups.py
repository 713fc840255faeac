"""Who may run a job where: in an organization, and in its resource groups."""

from hublet.accounts.errors import RoleNeeded
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role
from hublet.accounts.resource_groups import service as resource_groups
from hublet.core.database import Reader
from hublet.jobs.errors import GroupNotForUsers, GroupRoleNeeded
from hublet.jobs.owners import Standing


async def check_group(conn: Reader, standing: Standing, group_id: str | None) -> None:
    """Refuse somebody who may not run jobs there; in a resource group the role there decides."""
    owner = standing.owner
    if group_id is None:
        if not standing.role.covers(Role.contributor):
            raise RoleNeeded(Role.contributor, owner.name)
        return
    if not owner.is_organization:
        raise GroupNotForUsers
    organization = await organizations.get(conn, owner.name)
    user_id = standing.caller.user_id
    role = await resource_groups.role_in(conn, organization, group_id, user_id=user_id)
    if role is None or not role.covers(Role.contributor):
        raise GroupRoleNeeded(Role.contributor)
