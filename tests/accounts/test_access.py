"""Which role of a user counts in an organization and in its resource groups."""

import pytest

from hublet.accounts.access import effective_role, role_of
from hublet.accounts.organizations import store
from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from people import a_user, an_organization
from repositories import a_resource_group


@pytest.mark.parametrize(
    ("organization", "group_id", "resource_group", "expected"),
    [
        pytest.param(None, None, None, None, id="a stranger has no role"),
        pytest.param(Role.write, None, None, Role.write, id="outside of groups a member's role"),
        pytest.param(Role.admin, "g", None, Role.admin, id="an administrator needs no group"),
        pytest.param(Role.admin, "g", Role.read, Role.admin, id="a group takes nothing from one"),
        pytest.param(Role.write, "g", None, None, id="a member outside of the group has no role"),
        pytest.param(Role.read, "g", Role.write, Role.write, id="a group may give more"),
        pytest.param(Role.write, "g", Role.read, Role.read, id="a group may give less"),
        pytest.param(None, "g", Role.admin, None, id="a group alone gives a former member nothing"),
    ],
)
def test_effective_role(
    organization: Role | None,
    group_id: str | None,
    resource_group: Role | None,
    expected: Role | None,
) -> None:
    role = effective_role(
        organization=organization, resource_group_id=group_id, resource_group=resource_group
    )
    assert role is expected


async def test_a_role_in_a_group_counts_as_long_as_the_membership(database: Database) -> None:
    organization = await an_organization(
        database, "engines", plan=OrganizationPlan.team, members={"bob": Role.read}
    )
    bob = await a_user(database, "bob")
    group = await a_resource_group(database, organization, members={"bob": Role.write})

    async with database.transaction() as conn:
        outside = await role_of(conn, organization.id, user_id=bob.id)
        inside = await role_of(conn, organization.id, user_id=bob.id, resource_group_id=group.id)
        await store.remove_member(conn, organization.id, user_id=bob.id)
        after = await role_of(conn, organization.id, user_id=bob.id, resource_group_id=group.id)

    assert (outside, inside, after) == (Role.read, Role.write, None)
