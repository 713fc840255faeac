"""Changes of a user in the shapes that identity providers send."""

from typing import Any

import pytest

from scim.directories import USER, Directory

ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
BEFORE: dict[str, Any] = {
    "externalId": "x1",
    "name": {"givenName": "Ada", "familyName": "Byron"},
    "emails": [{"value": "ada@corp.test", "type": "work", "primary": True}],
}
SHOWN = {
    "userName": "ada",
    "externalId": "x1",
    "name": {"givenName": "Ada", "familyName": "Byron"},
    "emails": [{"value": "ada@corp.test", "primary": True}],
    "active": True,
}


@pytest.mark.parametrize(
    ("operation", "changed"),
    [
        pytest.param(
            {"op": "replace", "value": {"active": False}}, {"active": False}, id="as Okta does"
        ),
        pytest.param(
            {"op": "Replace", "path": "active", "value": "False"},
            {"active": False},
            id="as Entra ID does",
        ),
        pytest.param(
            {"op": "REPLACE", "path": "ACTIVE", "value": False},
            {"active": False},
            id="in capitals",
        ),
        pytest.param(
            {"op": "Add", "value": {"name.familyName": "Lovelace"}},
            {"name": {"givenName": "Ada", "familyName": "Lovelace"}},
            id="a dotted key without a path",
        ),
        pytest.param(
            {"op": "replace", "path": f"{USER}:name.familyName", "value": "Lovelace"},
            {"name": {"givenName": "Ada", "familyName": "Lovelace"}},
            id="a path with its schema",
        ),
        pytest.param(
            {"op": "replace", "path": "name", "value": {"familyName": "Lovelace"}},
            {"name": {"givenName": "Ada", "familyName": "Lovelace"}},
            id="a part of what is complex",
        ),
        pytest.param(
            {"op": "Replace", "path": 'emails[type eq "work"].value', "value": "new@corp.test"},
            {"emails": [{"value": "new@corp.test", "primary": True}]},
            id="an address by its type",
        ),
        pytest.param(
            {"op": "Add", "path": 'emails[type eq "home"].value', "value": "home@corp.test"},
            {
                "emails": [
                    {"value": "ada@corp.test", "primary": True},
                    {"value": "home@corp.test"},
                ]
            },
            id="an address of a type that there is not",
        ),
        pytest.param(
            {"op": "add", "path": "emails", "value": [{"value": "b@corp.test"}]},
            {"emails": [{"value": "ada@corp.test", "primary": True}, {"value": "b@corp.test"}]},
            id="another address",
        ),
        pytest.param(
            {"op": "remove", "path": 'emails[value eq "ada@corp.test"]'},
            {"emails": None},
            id="an address taken away by a filter",
        ),
        pytest.param(
            {"op": "Remove", "path": "emails", "value": [{"value": "ada@corp.test"}]},
            {"emails": None},
            id="an address taken away by a value",
        ),
        pytest.param({"op": "remove", "path": "externalId"}, {"externalId": None}, id="remove"),
        pytest.param(
            {"op": "replace", "path": "userName", "value": "augusta"},
            {"userName": "augusta"},
            id="another name",
        ),
        pytest.param(
            {"op": "Add", "path": f"{ENTERPRISE}:department", "value": "Engines"},
            {},
            id="what is not kept",
        ),
        pytest.param(
            {"op": "replace", "value": {"displayName": "Ada", "title": "Countess"}},
            {},
            id="more of what is not kept",
        ),
    ],
)
async def test_a_change_is_understood(
    invited: Directory, operation: dict[str, Any], changed: dict[str, Any]
) -> None:
    user = await invited.add("ada", **BEFORE)

    after = await invited.change(user, operation)

    expected = SHOWN | changed
    shown = {name: after[name] for name in after if name not in {"schemas", "id", "meta"}}
    assert shown == {name: value for name, value in expected.items() if value is not None}
    assert (await invited.ask("GET", f"/Users/{user['id']}")).json() == after


@pytest.mark.parametrize(
    ("operation", "scim_type"),
    [
        pytest.param(
            {"op": "replace", "path": "shoeSize", "value": 7}, "invalidPath", id="unknown path"
        ),
        pytest.param(
            {"op": "add", "value": {"shoeSize": 7}}, "invalidValue", id="an unknown attribute"
        ),
        pytest.param(
            {"op": "replace", "path": "externalId", "value": 7}, "invalidValue", id="a number"
        ),
        pytest.param({"op": "move", "path": "userName"}, "invalidValue", id="an unknown change"),
        pytest.param({"op": "remove"}, "noTarget", id="nothing to remove"),
        pytest.param({"op": "remove", "path": "userName"}, "mutability", id="what is required"),
        pytest.param({"op": "replace", "path": "id", "value": "a" * 24}, "mutability", id="the id"),
        pytest.param(
            {"op": "replace", "path": "userName", "value": "bob"}, "uniqueness", id="a taken name"
        ),
        pytest.param(
            {"op": "replace", "path": "emails", "value": [{"value": "x"}]},
            "invalidValue",
            id="no address",
        ),
        pytest.param(
            {"op": "replace", "path": "emails[", "value": "x"}, "invalidPath", id="half a path"
        ),
    ],
)
async def test_a_change_that_breaks_a_rule_is_refused(
    invited: Directory, operation: dict[str, Any], scim_type: str
) -> None:
    await invited.add("bob")
    user = await invited.add("ada", **BEFORE)

    response = await invited.patch(
        f"/Users/{user['id']}", {"op": "replace", "path": "externalId", "value": "x9"}, operation
    )

    assert response.json().get("scimType") == scim_type, response.text
    assert response.status_code == (409 if scim_type == "uniqueness" else 400)
    # All of a change or nothing.
    assert (await invited.ask("GET", f"/Users/{user['id']}")).json() == user
