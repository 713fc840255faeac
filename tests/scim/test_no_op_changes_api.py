"""Requests without a change write nothing: no version, no line in the audit log."""

from typing import Any

import pytest

from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.records import AuditFilter
from hublet.core.database import Database
from scim.directories import USER, Directory


async def _actions(database: Database, directory: Directory) -> list[str]:
    async with database.read() as conn:
        lines = await audit.list_of(conn, directory.organization.id, AuditFilter())
    return [line.action for line in lines]


@pytest.mark.parametrize("told", [{}, {"active": None}])
async def test_a_replacement_without_active_is_no_change(
    database: Database, invited: Directory, told: dict[str, Any]
) -> None:
    for name, active in (("ada", True), ("bob", False)):
        user = await invited.add(name, active=active)
        body = {"schemas": [USER], "userName": name} | told

        response = await invited.ask("PUT", f"/Users/{user['id']}", json=body)

        assert (response.status_code, response.headers["etag"]) == (200, 'W/"1"')
        assert response.json() == user
    assert "scim-user.update" not in await _actions(database, invited)


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "Replace", "path": "userName", "value": "ADA"},
        {"op": "replace", "path": f"{USER}:USERNAME", "value": "ADA"},
        {"op": "replace", "value": {"username": "ADA"}},
        {"op": "add", "value": {f"{USER}:userName": "ADA"}},
        {"op": "replace", "value": {USER: {"userName": "ADA"}}},
    ],
)
async def test_a_managed_name_in_another_case_is_no_change(
    database: Database, managed: Directory, operation: dict[str, Any]
) -> None:
    user = await managed.add("Ada")

    patched = await managed.patch(f"/Users/{user['id']}", operation)

    assert (patched.status_code, patched.json()) == (200, user)
    assert "scim-user.update" not in await _actions(database, managed)


async def test_a_managed_user_is_replaced_under_a_name_in_another_case(managed: Directory) -> None:
    user = await managed.add("Ada")
    body = {"schemas": [USER], "userName": "ADA", "name": {"givenName": "Ada"}}

    replaced = await managed.ask("PUT", f"/Users/{user['id']}", json=body)

    assert replaced.status_code == 200
    assert replaced.json()["userName"] == "Ada"
    assert replaced.json()["name"] == {"givenName": "Ada"}


async def test_a_managed_name_is_still_not_another(managed: Directory) -> None:
    user = await managed.add("Ada")
    path = f"/Users/{user['id']}"

    replaced = await managed.ask("PUT", path, json={"schemas": [USER], "userName": "Eve"})
    patched = await managed.patch(path, {"op": "replace", "value": {"userName": "Eve"}})

    for response in (replaced, patched):
        assert (response.status_code, response.json()["scimType"]) == (400, "mutability")


async def test_a_name_that_is_not_managed_is_spelled_as_the_provider_does(
    invited: Directory,
) -> None:
    user = await invited.add("ada")

    changed = await invited.change(user, {"op": "replace", "path": "userName", "value": "ADA"})

    assert changed["userName"] == "ADA"
