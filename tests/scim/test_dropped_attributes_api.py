"""Attributes that the hub does not store are dropped; only their names are checked."""

from typing import Any

import pytest

from scim.directories import USER, Directory

ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param({ENTERPRISE: {"manager": {"value": "26118915"}}}, id="a manager by id"),
        pytest.param({ENTERPRISE: {"manager": "26118915"}}, id="a manager as a text"),
        pytest.param({ENTERPRISE: {"manager": {"displayName": "Charles"}}}, id="a named manager"),
        pytest.param({ENTERPRISE: {"employeeNumber": 1815}}, id="a number"),
        pytest.param({"photos": [{"value": "none", "type": "photo"}]}, id="a photo without a URL"),
        pytest.param({"profileUrl": "none"}, id="a profile without a URL"),
        pytest.param({"x509Certificates": [{"value": 7}]}, id="no certificate"),
        pytest.param({"roles": ["admin"]}, id="roles as texts"),
        pytest.param({"addresses": {"type": "work"}}, id="one address"),
        pytest.param({"name": {"formatted": 7}}, id="a name that is none"),
        pytest.param({"phoneNumbers": [{"primary": True}] * 2}, id="two that are primary"),
    ],
)
async def test_a_value_that_is_not_kept_is_not_judged(
    invited: Directory, attributes: dict[str, Any]
) -> None:
    user = await invited.add("ada", **attributes)
    path = f"/Users/{user['id']}"
    body = {"schemas": [USER, ENTERPRISE], "userName": "ada"} | attributes

    replaced = await invited.ask("PUT", path, json=body)

    assert user.keys() == {"schemas", "id", "meta", "userName", "active"}
    assert (replaced.status_code, replaced.json()) == (200, user)


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ({"shoeSize": 7}, "shoeSize"),
        ({"profileUrl": "none", "photos": [{"value": 7, "shoe": 1}]}, "photos[0].shoe"),
        ({ENTERPRISE: {"manager": {"shoe": 1}}}, f"{ENTERPRISE}:manager.shoe"),
        ({ENTERPRISE: {"manager": "x", "shoe": 1}}, f"{ENTERPRISE}:shoe"),
        ({"name": {"nickName": "x"}}, "name.nickName"),
    ],
)
async def test_a_name_that_the_rfc_does_not_know_is_refused(
    invited: Directory, attributes: dict[str, Any], name: str
) -> None:
    body = {"schemas": [USER, ENTERPRISE], "userName": "ada"} | attributes

    response = await invited.ask("POST", "/Users", json=body)

    assert response.status_code == 400
    assert response.json()["detail"] == f"Extra inputs are not permitted: {name}"


@pytest.mark.parametrize(
    "attributes",
    [
        {"userName": 7},
        {"active": "perhaps"},
        {"externalId": 7},
        {"name": "Ada"},
        {"name": {"givenName": 7}},
        {"emails": "ada@corp.test"},
        {"emails": [{"value": 7}]},
    ],
)
async def test_a_value_that_is_kept_is_judged(
    invited: Directory, attributes: dict[str, Any]
) -> None:
    body = {"schemas": [USER], "userName": "ada"} | attributes

    response = await invited.ask("POST", "/Users", json=body)

    assert (response.status_code, response.json()["scimType"]) == (400, "invalidValue")
