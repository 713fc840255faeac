"""Managed users: their accounts belong to the organization."""

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.events import MemberAdded, UserCreated, UserUpdated
from outbox_events import published_events
from people import a_user, sign_in
from scim.directories import USER, Directory, a_directory, a_person, error_body, role_of
from statements import Statements
from workers import drain

ADDRESS = [{"value": "ada@corp.test", "primary": True}]


async def _addresses(database: Database, name: str) -> list[tuple[str, bool, bool]]:
    """Return each address of an account: whether it is primary, and whether it is verified."""
    user = await a_user(database, name)
    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT address, is_primary, verified_at FROM emails WHERE user_id = $1 ORDER BY id",
            user.id,
        )
    return [(row["address"], bool(row["is_primary"]), bool(row["verified_at"])) for row in rows]


async def test_a_created_user_has_an_account_without_a_password(
    database: Database, managed: Directory
) -> None:
    await managed.add("ada", name={"givenName": "Ada", "familyName": "Lovelace"}, emails=ADDRESS)

    account = await a_user(database, "ada")
    assert (account.fullname, account.disabled_at) == ("Ada Lovelace", None)
    assert await role_of(database, managed.organization, "ada") is Role.read
    assert await _addresses(database, "ada") == [("ada@corp.test", True, True)]
    async with database.read() as conn:
        hashed = await conn.fetch_value("SELECT password_hash FROM users WHERE id = $1", account.id)
    assert hashed is None
    assert account.id in {fact["user_id"] for fact in await published_events(database, UserCreated)}


async def test_a_new_account_is_told_of_once_and_nothing_is_looked_for_that_it_cannot_have(
    database: Database, managed: Directory, statements: Statements
) -> None:
    before = await published_events(database, UserCreated, UserUpdated, MemberAdded)
    statements.begin()

    await managed.add("ada", name={"givenName": "Ada", "familyName": "Lovelace"}, emails=ADDRESS)

    noted = "\n".join(statements.noted)
    published = await published_events(database, UserCreated, UserUpdated, MemberAdded)
    # The account with its name, then the membership.
    assert [fact.get("name") for fact in published[len(before) :]] == ["ada", None]
    assert "INSERT INTO memberships" in noted
    for sought in (
        "FROM emails WHERE user_id",
        "SELECT role FROM memberships",
        "DELETE FROM join_requests",
        "FROM resource_group_members",
        "FROM users u WHERE u.id",
        "FROM scim_members",
    ):
        assert sought not in noted


async def test_a_full_name_is_a_single_line(managed: Directory) -> None:
    name = {"givenName": "Ada\r\nBcc: eve@example.com", "familyName": "Lovelace"}

    response = await managed.ask(
        "POST", "/Users", json={"schemas": [USER], "userName": "ada", "name": name}
    )

    assert (response.status_code, response.json()) == (
        400,
        error_body(
            400, "A full name must be a single line without control characters.", "invalidValue"
        ),
    )


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("a", "A name has 2 to 42 characters."),
        ("a" * 43, "A name has 2 to 42 characters."),
        ("ada@corp.test", "A name has only the letters a to z, digits and hyphens."),
        ("ada--l", "A name has single hyphens, and none at its start or end."),
        ("-ada", "A name has single hyphens, and none at its start or end."),
        ("1815", "A name does not consist of digits only."),
        ("settings", "The name settings is reserved."),
    ],
)
async def test_the_name_must_be_one_for_an_account(
    managed: Directory, name: str, detail: str
) -> None:
    response = await managed.ask("POST", "/Users", json={"schemas": [USER], "userName": name})

    assert response.status_code == 400
    assert response.json() == error_body(400, detail, "invalidValue")


async def test_a_name_that_somebody_has_is_taken(database: Database, managed: Directory) -> None:
    await a_user(database, "ada")

    response = await managed.ask("POST", "/Users", json={"schemas": [USER], "userName": "Ada"})

    assert response.status_code == 409
    assert response.json() == error_body(409, "The name Ada is taken.", "uniqueness")


async def test_an_address_that_somebody_has_is_taken_and_nothing_is_left_behind(
    database: Database, managed: Directory
) -> None:
    await a_person(database, "bob", "ada@corp.test")

    body = {"schemas": [USER], "userName": "ada", "emails": ADDRESS}
    response = await managed.ask("POST", "/Users", json=body)

    assert response.status_code == 409
    assert response.json() == error_body(
        409, "The e-mail address ada@corp.test belongs to an account already.", "uniqueness"
    )
    assert await managed.user_names() == []
    await managed.add("ada")


async def test_the_name_does_not_change(managed: Directory) -> None:
    user = await managed.add("ada")

    body = {"schemas": [USER], "userName": "bob"}
    replaced = await managed.ask("PUT", f"/Users/{user['id']}", json=body)
    changed = await managed.patch(
        f"/Users/{user['id']}", {"op": "replace", "path": "userName", "value": "bob"}
    )

    for response in (replaced, changed):
        assert (response.status_code, response.json()["scimType"]) == (400, "mutability")
    assert await managed.user_names() == ["ada"]


async def test_the_account_follows_what_the_provider_says(
    database: Database, managed: Directory
) -> None:
    user = await managed.add("ada", emails=ADDRESS)

    await managed.change(
        user,
        {"op": "replace", "path": "name.givenName", "value": "Augusta"},
        {
            "op": "replace",
            "path": "emails",
            "value": [{"value": "old@corp.test"}, {"value": "new@corp.test", "primary": True}],
        },
    )

    assert (await a_user(database, "ada")).fullname == "Augusta"
    assert sorted(await _addresses(database, "ada")) == [
        ("new@corp.test", True, True),
        ("old@corp.test", False, True),
    ]

    await managed.change(user, {"op": "remove", "path": "emails"})
    assert await _addresses(database, "ada") == []


async def test_the_primary_address_stays_it_when_it_comes_twice(
    database: Database, managed: Directory
) -> None:
    emails = [
        {"value": "e1@corp.test", "type": "work", "primary": True},
        {"value": "e2@corp.test"},
        {"value": "E1@corp.test", "type": "home"},
    ]

    await managed.add("eve", emails=emails)

    assert await _addresses(database, "eve") == [
        ("e1@corp.test", True, True),
        ("e2@corp.test", False, True),
    ]


async def test_a_user_created_as_inactive_has_an_account_that_is_off(
    database: Database, managed: Directory
) -> None:
    user = await managed.add("ada", active=False)

    assert (await a_user(database, "ada")).disabled_at is not None
    assert await role_of(database, managed.organization, "ada") is None

    await managed.set_active(user, True)
    assert (await a_user(database, "ada")).disabled_at is None
    assert await role_of(database, managed.organization, "ada") is Role.read


async def test_a_deleted_user_leaves_an_account_that_nobody_can_use(
    client: httpx2.AsyncClient, database: Database, managed: Directory
) -> None:
    user = await managed.add("ada", emails=ADDRESS)
    ada = await sign_in(database, "ada")

    response = await managed.ask("DELETE", f"/Users/{user['id']}")

    assert response.status_code == 204
    assert (await client.get("/api/whoami-v2", headers=ada)).status_code == 401
    assert (await a_user(database, "ada")).disabled_at is not None
    # The address is free for somebody else.
    await managed.add("bob", emails=ADDRESS)


async def test_a_user_who_is_provisioned_again_has_the_account_and_another_id(
    client: httpx2.AsyncClient, database: Database, managed: Directory
) -> None:
    first = await managed.add("ada", emails=ADDRESS)
    account = await a_user(database, "ada")
    old = await sign_in(database, "ada")
    await managed.ask("DELETE", f"/Users/{first['id']}")

    second = await managed.add("ada", emails=ADDRESS)

    assert second["id"] != first["id"]
    assert (await a_user(database, "ada")).id == account.id
    assert await role_of(database, managed.organization, "ada") is Role.read
    assert (await client.get("/api/whoami-v2", headers=old)).status_code == 401


async def test_an_account_that_an_organization_left_is_not_for_another_one(
    client: httpx2.AsyncClient, database: Database, managed: Directory
) -> None:
    user = await managed.add("ada")
    await managed.ask("DELETE", f"/Users/{user['id']}")
    other = await a_directory(client, database, managed=True, name="other")

    response = await other.ask("POST", "/Users", json={"schemas": [USER], "userName": "ada"})

    assert response.status_code == 409
    assert response.json() == error_body(409, "The name ada is taken.", "uniqueness")


async def test_a_managed_user_cannot_log_in_by_password(
    database: Database, managed: Directory
) -> None:
    await managed.add("ada", password="correct horse battery staple")

    async with database.read() as conn:
        found = await accounts.find_by_password(conn, "ada", "correct horse battery staple")
    assert found is None


@pytest.mark.parametrize("is_invited_first", [True, False])
async def test_an_organization_does_not_speak_for_an_address_that_another_one_invites(
    client: httpx2.AsyncClient, database: Database, managed: Directory, *, is_invited_first: bool
) -> None:
    other = await a_directory(client, database, name="other")
    people = [("ada", managed), ("ada@corp.test", other)]
    for name, directory in reversed(people) if is_invited_first else people:
        await directory.add(name, emails=ADDRESS)
    await drain(database)

    assert await role_of(database, managed.organization, "ada") is Role.read
    assert await role_of(database, other.organization, "ada") is None
