"""Access rules of organizations: which role of a user counts where."""

from hublet.accounts.organizations import store
from hublet.accounts.records import Role
from hublet.core.database import Reader


async def role_of(
    conn: Reader, organization_id: str, *, user_id: str, resource_group_id: str | None = None
) -> Role | None:
    """Return the role that counts in an organization, or in one of its resource groups."""
    organization = await store.role_of(conn, organization_id, user_id=user_id)
    resource_group = None
    if resource_group_id is not None:
        resource_group = await store.group_role_of(conn, resource_group_id, user_id=user_id)
    return effective_role(
        organization=organization,
        resource_group_id=resource_group_id,
        resource_group=resource_group,
    )


def effective_role(
    *, organization: Role | None, resource_group_id: str | None, resource_group: Role | None
) -> Role | None:
    """Return the role that counts for something of an organization; None: no access at all.

    `organization` and `resource_group` are the roles that the user has there. In a resource group
    only its own members have a role, and only as long as they are members of the organization. An
    administrator of the organization keeps that role everywhere in it.
    """
    if resource_group_id is None or organization is Role.admin:
        return organization
    return resource_group if organization is not None else None
