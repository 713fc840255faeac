"""The role that the name of a group gives."""

import pytest

from hublet.accounts.records import Role
from hublet.scim.users.roles import RoleGrant, grant_of, highest_roles


@pytest.mark.parametrize(
    ("name", "grant"),
    [
        pytest.param("acme:write", RoleGrant(place=None, role=Role.write), id="a role here"),
        pytest.param("ACME:Admin", RoleGrant(place=None, role=Role.admin), id="in any case"),
        pytest.param("acme : read", RoleGrant(place=None, role=Role.read), id="with blanks"),
        pytest.param(
            "acme:research:contributor",
            RoleGrant(place="research", role=Role.contributor),
            id="a role in a resource group",
        ),
        pytest.param(
            "acme:Data: EU:read",
            RoleGrant(place="data: eu", role=Role.read),
            id="a resource group with a colon",
        ),
        pytest.param("acme", None, id="the organization alone"),
        pytest.param("write", None, id="a role alone"),
        pytest.param("acme:owner", None, id="a role that does not exist"),
        pytest.param("acme::write", None, id="a resource group without a name"),
        pytest.param("other:write", None, id="another organization"),
        pytest.param("Engineering", None, id="any other name"),
    ],
)
def test_a_name_says_which_role_and_where(name: str, grant: RoleGrant | None) -> None:
    assert grant_of(name, organization="Acme") == grant


def test_the_highest_role_counts_in_each_place() -> None:
    names = ["acme:read", "acme:write", "acme:contributor", "acme:lab:read", "acme:lab:admin", "x"]

    assert highest_roles(names, organization="acme") == {None: Role.write, "lab": Role.admin}
    assert highest_roles(reversed(names), organization="acme") == {
        None: Role.write,
        "lab": Role.admin,
    }
