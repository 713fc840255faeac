"""Access rules of organizations: which role of a member counts where."""

from hublet.accounts.records import Role


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
