"""Groups in an organization's directory, and the roles that they give."""

from typing import Any

import httpx2
import pytest

from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import store as group_store
from hublet.accounts.records import OPERATOR, AuditFilter, Role
from hublet.accounts.resource_groups import service as resource_groups
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.events import MemberRoleChanged
from outbox_events import published_events
from people import a_user
from scim.directories import GROUP, LIST, Directory, a_directory, error_body, role_of

NOBODY = "0" * 24


async def _members(directory: Directory, group: dict[str, Any]) -> set[str]:
    shown = (await directory.ask("GET", f"/Groups/{group['id']}")).json()
    return {member["value"] for member in shown.get("members", [])}


async def _group_role(
    database: Database, directory: Directory, group_id: str, name: str
) -> Role | None:
    user = await a_user(database, name)
    async with database.read() as conn:
        return await group_store.group_role_of(conn, group_id, user_id=user.id)


async def _resource_group(database: Database, directory: Directory, name: str) -> str:
    async with database.transaction() as conn:
        group = await resource_groups.create(
            conn, OPERATOR, directory.organization, name=name, description=""
        )
    return group.id


async def test_a_created_group_is_shown_with_its_members(invited: Directory) -> None:
    ada = await invited.add("ada")

    response = await invited.ask(
        "POST",
        "/Groups",
        json={
            "schemas": [GROUP],
            "displayName": "Engines",
            "externalId": "g1",
            "members": [{"value": ada["id"], "display": "whatever"}],
        },
    )

    group = response.json()
    address = f"http://hub.test{invited.path}/Groups/{group['id']}"
    assert response.status_code == 201
    assert response.headers["location"] == address
    assert group == {
        "schemas": [GROUP],
        "id": group["id"],
        "externalId": "g1",
        "meta": {
            "resourceType": "Group",
            "created": group["meta"]["created"],
            "lastModified": group["meta"]["created"],
            "location": address,
            "version": 'W/"1"',
        },
        "displayName": "Engines",
        "members": [
            {
                "value": ada["id"],
                "$ref": f"http://hub.test{invited.path}/Users/{ada['id']}",
                "type": "User",
            }
        ],
    }
    assert (await invited.ask("GET", f"/Groups/{group['id']}")).json() == group


async def test_a_list_may_leave_the_members_out(invited: Directory) -> None:
    group = await invited.add_group("Engines", [await invited.add("ada")])

    response = await invited.ask(
        "GET",
        "/Groups",
        params={"filter": 'displayName eq "engines"', "excludedAttributes": "members"},
    )

    del group["members"]
    assert response.json() == {
        "schemas": [LIST],
        "totalResults": 1,
        "startIndex": 1,
        "itemsPerPage": 1,
        "Resources": [group],
    }


@pytest.mark.parametrize(
    ("operation", "left"),
    [
        pytest.param(
            {"op": "add", "path": "members", "value": [{"value": "BOB"}]}, "ab", id="add one"
        ),
        pytest.param(
            {"op": "Add", "path": "members", "value": [{"value": "BOB"}, {"value": "ADA"}]},
            "ab",
            id="add one who is in it",
        ),
        pytest.param(
            {"op": "add", "value": {"members": [{"value": "BOB"}]}}, "ab", id="add without a path"
        ),
        pytest.param(
            {"op": "remove", "path": 'members[value eq "ADA"]'}, "", id="remove by a filter"
        ),
        pytest.param(
            {"op": "Remove", "path": "members", "value": [{"value": "ADA"}]},
            "",
            id="remove by a value",
        ),
        pytest.param(
            {"op": "remove", "path": 'members[value eq "BOB"]'}, "a", id="remove who is not in it"
        ),
        pytest.param({"op": "remove", "path": "members"}, "", id="remove all"),
        pytest.param(
            {"op": "replace", "path": "members", "value": [{"value": "BOB"}]}, "b", id="replace"
        ),
        pytest.param(
            {"op": "Replace", "value": {"id": "GROUP", "members": [{"value": "BOB"}]}},
            "b",
            id="replace without a path",
        ),
        pytest.param(
            {"op": "add", "path": f"{GROUP}:members", "value": [{"value": "BOB"}]},
            "ab",
            id="a path with its schema",
        ),
    ],
)
async def test_members_are_changed_in_every_shape(
    invited: Directory, operation: dict[str, Any], left: str
) -> None:
    ada, bob = await invited.add("ada"), await invited.add("bob")
    group = await invited.add_group("Engines", [ada])
    text = httpx2.Response(200, json=operation).text
    for word, each in (("ADA", ada), ("BOB", bob), ("GROUP", group)):
        text = text.replace(word, each["id"])

    response = await invited.patch(f"/Groups/{group['id']}", httpx2.Response(200, text=text).json())

    assert (response.status_code, response.content) == (204, b"")
    ids = {"a": ada["id"], "b": bob["id"]}
    assert await _members(invited, group) == {ids[letter] for letter in left}


@pytest.mark.parametrize("value", [NOBODY, "ada", "", "x" * 300])
async def test_a_member_must_be_a_user_of_the_directory(invited: Directory, value: str) -> None:
    group = await invited.add_group("Engines")

    response = await invited.patch(
        f"/Groups/{group['id']}", {"op": "add", "path": "members", "value": [{"value": value}]}
    )

    assert response.status_code == 400
    assert response.json()["scimType"] == "invalidValue"
    assert await _members(invited, group) == set()


async def test_a_user_of_another_organization_is_no_member(
    client: httpx2.AsyncClient, database: Database, invited: Directory
) -> None:
    other = await a_directory(client, database, name="other")
    stranger = await other.add("eve")

    response = await invited.ask(
        "POST",
        "/Groups",
        json={"schemas": [GROUP], "displayName": "G", "members": [{"value": stranger["id"]}]},
    )

    assert response.status_code == 400
    assert response.json() == error_body(
        400, f"members: there is no user {stranger['id']} in this directory.", "invalidValue"
    )
    group = await invited.add_group("Engines")
    assert (await other.ask("GET", f"/Groups/{group['id']}")).json() == error_body(
        404, f"There is no group {group['id']} in this directory."
    )


@pytest.mark.parametrize(
    ("second", "detail"),
    [
        ({"displayName": "ENGINES"}, "displayName: there is a group ENGINES already."),
        (
            {"displayName": "Other", "externalId": "g1"},
            "externalId: another group has this value.",
        ),
    ],
)
async def test_names_and_external_ids_of_groups_are_unique(
    invited: Directory, second: dict[str, str], detail: str
) -> None:
    first = {"schemas": [GROUP], "displayName": "Engines", "externalId": "g1"}
    assert (await invited.ask("POST", "/Groups", json=first)).status_code == 201

    response = await invited.ask("POST", "/Groups", json={"schemas": [GROUP]} | second)

    assert response.status_code == 409
    assert response.json() == error_body(409, detail, "uniqueness")


@pytest.mark.parametrize("name", ["", "   ", "x" * 256, None, 7])
async def test_a_group_needs_a_name(invited: Directory, name: object) -> None:
    response = await invited.ask("POST", "/Groups", json={"schemas": [GROUP], "displayName": name})

    assert (response.status_code, response.json()["scimType"]) == (400, "invalidValue")


async def test_a_group_gives_its_members_a_role(database: Database, managed: Directory) -> None:
    ada = await managed.add("ada")
    group = await managed.add_group("acme:write", [ada])
    assert await role_of(database, managed.organization, "ada") is Role.write
    [changed] = await published_events(database, MemberRoleChanged)
    assert changed["role"] == Role.write

    await managed.patch(f"/Groups/{group['id']}", {"op": "remove", "path": "members"})
    assert await role_of(database, managed.organization, "ada") is Role.read


async def test_the_highest_role_that_is_left_counts(database: Database, managed: Directory) -> None:
    ada = await managed.add("ada")
    for name in ("acme:contributor", "acme:write"):
        await managed.add_group(name, [ada])
    highest = await managed.add_group("acme:admin", [ada])
    assert await role_of(database, managed.organization, "ada") is Role.admin

    assert (await managed.ask("DELETE", f"/Groups/{highest['id']}")).status_code == 204

    assert await role_of(database, managed.organization, "ada") is Role.write
    assert (await managed.ask("GET", f"/Groups/{highest['id']}")).status_code == 404


async def test_a_group_of_any_other_name_gives_nothing(
    database: Database, managed: Directory
) -> None:
    ada = await managed.add("ada")

    await managed.add_group("Engineering", [ada])

    assert await role_of(database, managed.organization, "ada") is Role.read


async def test_a_role_that_no_group_gave_is_not_taken_by_other_groups(
    database: Database, managed: Directory
) -> None:
    ada = await managed.add("ada")
    group = await managed.add_group("acme:lab:read", [ada])
    await managed.add_group("acme:write", [ada])

    await managed.ask("DELETE", f"/Groups/{group['id']}")

    assert await role_of(database, managed.organization, "ada") is Role.write


async def test_a_group_that_is_renamed_gives_another_role(
    database: Database, managed: Directory
) -> None:
    ada = await managed.add("ada")
    group = await managed.add_group("acme:write", [ada])

    named = {"op": "replace", "path": "displayName", "value": "acme:contributor"}
    assert (await managed.patch(f"/Groups/{group['id']}", named)).status_code == 204
    assert await role_of(database, managed.organization, "ada") is Role.contributor

    renamed = {"op": "replace", "value": {"displayName": "Engineering"}}
    await managed.patch(f"/Groups/{group['id']}", renamed)
    assert await role_of(database, managed.organization, "ada") is Role.read


async def test_a_group_gives_a_role_in_a_resource_group(
    database: Database, managed: Directory
) -> None:
    research = await _resource_group(database, managed, "Research")
    ada = await managed.add("ada")
    group = await managed.add_group("acme:research:write", [ada])
    assert await _group_role(database, managed, research, "ada") is Role.write
    assert await role_of(database, managed.organization, "ada") is Role.read

    body = {"schemas": [GROUP], "displayName": "acme:research:write"}
    await managed.ask("PUT", f"/Groups/{group['id']}", json=body)
    assert await _group_role(database, managed, research, "ada") is None


async def test_roles_wait_for_whoever_is_not_active(database: Database, managed: Directory) -> None:
    research = await _resource_group(database, managed, "research")
    ada = await managed.add("ada", active=False)
    await managed.add_group("acme:write", [ada])
    await managed.add_group("acme:research:admin", [ada])
    assert await role_of(database, managed.organization, "ada") is None

    await managed.set_active(ada, True)

    assert await role_of(database, managed.organization, "ada") is Role.write
    assert await _group_role(database, managed, research, "ada") is Role.admin


async def test_a_group_cannot_take_the_last_owner_away(
    database: Database, invited: Directory
) -> None:
    async with database.transaction() as conn:
        olga = await accounts.get_user(conn, "olga")
        await accounts.add_email(conn, olga, "olga@corp.test", verified=True)
    group = await invited.add_group("acme:admin", [await invited.add("olga@corp.test")])

    response = await invited.ask("DELETE", f"/Groups/{group['id']}")

    assert response.status_code == 409
    assert response.json() == error_body(
        409, "acme would be left without an administrator: make somebody else one first."
    )
    assert await role_of(database, invited.organization, "olga") is Role.admin
    assert len(await _members(invited, group)) == 1


async def test_many_members_are_added_at_once(managed: Directory) -> None:
    users = [await managed.add(f"user-{number}") for number in range(40)]
    group = await managed.add_group("Everybody")

    response = await managed.patch(
        f"/Groups/{group['id']}",
        {"op": "add", "path": "members", "value": [{"value": user["id"]} for user in users]},
    )

    assert response.status_code == 204
    assert await _members(managed, group) == {user["id"] for user in users}


async def test_a_deleted_user_is_in_no_group(managed: Directory) -> None:
    ada = await managed.add("ada")
    group = await managed.add_group("Engines", [ada])

    await managed.ask("DELETE", f"/Users/{ada['id']}")

    assert await _members(managed, group) == set()


async def test_a_change_of_another_version_of_a_group_is_refused(invited: Directory) -> None:
    group = await invited.add_group("Engines")
    body = {"schemas": [GROUP], "displayName": "Other"}
    path = f"/Groups/{group['id']}"

    stale = await invited.ask("PUT", path, json=body, headers={"if-match": 'W/"7"'})
    fresh = await invited.ask("PUT", path, json=body, headers={"if-match": 'W/"1"'})

    assert (stale.status_code, fresh.status_code) == (412, 200)
    assert fresh.headers["etag"] == 'W/"2"'


async def test_changes_of_groups_stand_in_the_audit_log(
    database: Database, invited: Directory
) -> None:
    group = await invited.add_group("Engines")
    await invited.patch(
        f"/Groups/{group['id']}", {"op": "replace", "path": "displayName", "value": "Mills"}
    )
    await invited.ask("DELETE", f"/Groups/{group['id']}")

    async with database.read() as conn:
        lines = await audit.list_of(conn, invited.organization.id, AuditFilter())
    assert [(line.action, line.target) for line in reversed(lines)][2:] == [
        ("scim-group.create", "Engines"),
        ("scim-group.update", "Mills"),
        ("scim-group.delete", "Mills"),
    ]
