"""Users in an organization's directory."""

from typing import Any

import httpx2
import pytest

from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.records import AuditFilter, Role
from hublet.accounts.settings import emails
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.events import MemberAdded
from outbox_events import published_events
from people import Headers, a_user, sign_in
from scim.directories import (
    LIST,
    PATCH,
    USER,
    Directory,
    a_directory,
    a_person,
    error_body,
    last_modified,
    role_of,
)
from workers import drain

ADA = {
    "externalId": "00u1",
    "name": {"givenName": "Ada", "familyName": "Lovelace"},
    "emails": [{"value": "ada@corp.test", "type": "work", "primary": True}],
}


async def test_a_created_user_is_shown_with_its_address(invited: Directory) -> None:
    response = await invited.ask(
        "POST", "/Users", json={"schemas": [USER], "userName": "ada@corp.test"} | ADA
    )

    user = response.json()
    address = f"http://hub.test{invited.path}/Users/{user['id']}"
    assert response.status_code == 201
    assert response.headers["location"] == address
    assert response.headers["etag"] == 'W/"1"'
    assert user == {
        "schemas": [USER],
        "id": user["id"],
        "externalId": "00u1",
        "meta": {
            "resourceType": "User",
            "created": user["meta"]["created"],
            "lastModified": user["meta"]["created"],
            "location": address,
            "version": 'W/"1"',
        },
        "userName": "ada@corp.test",
        "name": {"givenName": "Ada", "familyName": "Lovelace"},
        # Interface 2.6: types are not supported.
        "emails": [{"value": "ada@corp.test", "primary": True}],
        "active": True,
    }
    again = await invited.ask("GET", f"/Users/{user['id']}")
    assert (again.status_code, again.json()) == (200, user)


async def test_links_never_lead_to_the_host_that_was_asked(invited: Directory) -> None:
    user = await invited.add("ada")
    response = await invited.ask("GET", f"/Users/{user['id']}", headers={"host": "evil.test"})

    assert response.json()["meta"]["location"].startswith("http://hub.test/api/organizations/acme/")


async def test_whoever_has_an_account_with_the_address_joins_at_once(
    database: Database, invited: Directory
) -> None:
    await a_person(database, "ada", "Ada@corp.test")

    await invited.add("ada@corp.test", **ADA)

    assert await role_of(database, invited.organization, "ada") is Role.read
    [joined] = [
        fact for fact in await published_events(database, MemberAdded) if fact["role"] == Role.read
    ]
    assert joined["actor_id"] is not None


async def test_the_address_may_stand_in_the_user_name_alone(
    database: Database, invited: Directory
) -> None:
    await a_person(database, "ada", "ada@corp.test")

    await invited.add("ada@corp.test")

    assert await role_of(database, invited.organization, "ada") is Role.read


async def test_an_address_that_is_not_verified_lets_nobody_in(
    database: Database, invited: Directory
) -> None:
    await a_person(database, "mallory", "ada@corp.test", verified=False)

    await invited.add("ada@corp.test", **ADA)

    assert await role_of(database, invited.organization, "mallory") is None


async def test_an_account_of_the_same_name_is_somebody_else(
    database: Database, invited: Directory
) -> None:
    await a_user(database, "ada")

    await invited.add("ada", emails=[{"value": "ada@corp.test"}])

    assert await role_of(database, invited.organization, "ada") is None


async def test_whoever_gets_an_account_later_joins_then(
    database: Database, invited: Directory
) -> None:
    user = await invited.add("ada@corp.test", **ADA)
    async with database.transaction() as conn:
        await accounts.create_user(conn, "ada", email="ada@corp.test")
    await drain(database)

    assert await role_of(database, invited.organization, "ada") is Role.read
    assert await invited.set_active(user, False)
    assert await role_of(database, invited.organization, "ada") is None


async def test_whoever_verifies_the_address_later_joins_then(
    database: Database, invited: Directory
) -> None:
    await invited.add("ada@corp.test")
    ada = await a_person(database, "ada", "ada@corp.test", verified=False)
    await drain(database)
    assert await role_of(database, invited.organization, "ada") is None

    async with database.transaction() as conn:
        [(email_id,)] = [
            tuple(row)
            for row in await conn.fetch_all("SELECT id FROM emails WHERE user_id = $1", ada.id)
        ]
        assert await emails.verify(conn, email_id, address="ada@corp.test")
    await drain(database)

    assert await role_of(database, invited.organization, "ada") is Role.read


async def test_an_invited_user_who_is_not_active_does_not_join(
    database: Database, invited: Directory
) -> None:
    await invited.add("ada@corp.test", active=False)
    async with database.transaction() as conn:
        await accounts.create_user(conn, "ada", email="ada@corp.test")
    await drain(database)

    assert await role_of(database, invited.organization, "ada") is None


async def test_a_member_who_is_provisioned_keeps_the_role(
    database: Database, invited: Directory
) -> None:
    async with database.transaction() as conn:
        olga = await accounts.get_user(conn, "olga")
        await accounts.add_email(conn, olga, "olga@corp.test", verified=True)

    await invited.add("olga@corp.test")

    assert await role_of(database, invited.organization, "olga") is Role.admin


async def test_one_account_is_one_user(database: Database, invited: Directory) -> None:
    await a_person(database, "ada", "ada@corp.test")
    await invited.add("ada@corp.test")

    body = {"schemas": [USER], "userName": "other", "emails": [{"value": "ada@corp.test"}]}
    response = await invited.ask("POST", "/Users", json=body)

    assert response.status_code == 409
    assert response.json() == error_body(
        409,
        "emails: the account with this address is provisioned as another user.",
        "uniqueness",
    )


@pytest.mark.parametrize(
    ("second", "detail"),
    [
        pytest.param(
            {"userName": "ADA"}, "userName: the name ADA is taken.", id="a name in another case"
        ),
        pytest.param(
            {"userName": "bob", "externalId": "x1"},
            "externalId: another user has this value.",
            id="an external id",
        ),
    ],
)
async def test_names_and_external_ids_are_unique(
    invited: Directory, second: dict[str, str], detail: str
) -> None:
    await invited.add("ada", externalId="x1")

    response = await invited.ask("POST", "/Users", json={"schemas": [USER]} | second)

    assert response.status_code == 409
    assert response.json() == error_body(409, detail, "uniqueness")


async def test_an_external_id_minds_the_case(invited: Directory) -> None:
    await invited.add("ada", externalId="x1")
    await invited.add("bob", externalId="X1")

    assert await invited.user_names(filter='externalId eq "X1"') == ["bob"]


@pytest.mark.parametrize(
    ("attributes", "scim_type"),
    [
        pytest.param({"externalId": 7}, "invalidValue", id="a number for an external id"),
        pytest.param({"userName": 7}, "invalidValue", id="a number for a name"),
        pytest.param({"userName": ""}, "invalidValue", id="no name"),
        pytest.param({"userName": None}, "invalidValue", id="a null for a name"),
        pytest.param({"userName": "a" * 255}, "invalidValue", id="a long name"),
        pytest.param({"externalId": "x" * 256}, "invalidValue", id="a long external id"),
        pytest.param({"name": {"givenName": "x" * 101}}, "invalidValue", id="a long first name"),
        pytest.param({"userName": "a\x00b"}, "invalidValue", id="a NUL character"),
        pytest.param({"emails": [{"value": "nowhere"}]}, "invalidValue", id="no address"),
        pytest.param(
            {"emails": [{"value": f"{n}@corp.test"} for n in range(21)]},
            "invalidValue",
            id="many addresses",
        ),
        pytest.param({"active": "perhaps"}, "invalidValue", id="neither true nor false"),
        pytest.param({"shoeSize": 7}, "invalidSyntax", id="what no schema knows"),
    ],
)
async def test_what_breaks_a_rule_is_refused(
    invited: Directory, attributes: dict[str, Any], scim_type: str
) -> None:
    body = {"schemas": [USER], "userName": "ada"} | attributes
    response = await invited.ask("POST", "/Users", json=body)

    assert (response.status_code, response.json().get("scimType")) == (400, scim_type), (
        response.text
    )
    assert await invited.user_names() == []


async def test_attributes_that_scim_knows_and_the_hub_does_not_keep_are_dropped(
    invited: Directory,
) -> None:
    enterprise = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
    user = await invited.add(
        "ada",
        schemas=[USER, enterprise],
        displayName="Ada",
        title="Countess",
        locale="en-GB",
        password="a secret that nobody keeps",
        groups=[],
        **{enterprise: {"department": "Engines", "employeeNumber": "1815"}},
    )

    assert user == {
        "schemas": user["schemas"],
        "id": user["id"],
        "meta": user["meta"],
        "userName": "ada",
        "active": True,
    }


async def test_names_of_attributes_may_be_in_any_case(invited: Directory) -> None:
    response = await invited.ask(
        "POST", "/Users", json={"SCHEMAS": [USER], "USERNAME": "ada", "externalid": "x1"}
    )

    assert (response.status_code, response.json()["externalId"]) == (201, "x1")


async def test_another_directory_does_not_show_the_user(
    client: httpx2.AsyncClient, database: Database, invited: Directory
) -> None:
    user = await invited.add("ada", externalId="x1")
    other = await a_directory(client, database, name="other")
    twin = invited.path.replace("/scim/", "/scim-provisioning/")

    for path in (other.path, twin):
        for method in ("GET", "PUT", "PATCH", "DELETE"):
            body: dict[str, Any] = {"schemas": [USER], "userName": "eve"}
            if method == "PATCH":
                change = {"op": "replace", "path": "active", "value": False}
                body = {"schemas": [PATCH], "Operations": [change]}
            response = await client.request(
                method, f"{path}/Users/{user['id']}", headers=other.headers, json=body
            )
            assert response.status_code == 404
            assert response.json() == error_body(
                404, f"There is no user {user['id']} in this directory."
            )
        found = await client.get(
            f"{path}/Users", params={"filter": 'externalId eq "x1"'}, headers=other.headers
        )
        assert found.json()["totalResults"] == 0
    assert (await invited.ask("GET", f"/Users/{user['id']}")).json() == user


async def test_the_same_names_are_free_in_another_directory(
    client: httpx2.AsyncClient, database: Database, invited: Directory
) -> None:
    await invited.add("ada", externalId="x1")
    other = await a_directory(client, database, name="other")

    await other.add("ada", externalId="x1")


async def test_an_account_id_is_no_scim_id(database: Database, invited: Directory) -> None:
    ada = await a_person(database, "ada", "ada@corp.test")
    await invited.add("ada@corp.test")

    response = await invited.ask("GET", f"/Users/{ada.id}")

    assert response.status_code == 404


async def test_a_replacement_takes_away_what_it_leaves_out(invited: Directory) -> None:
    user = await invited.add("ada@corp.test", **ADA)

    body = {"schemas": [USER], "userName": "ada2", "name": {"givenName": "A"}}
    response = await invited.ask("PUT", f"/Users/{user['id']}", json=body)

    replaced = response.json()
    assert response.status_code == 200
    assert response.headers["etag"] == 'W/"2"'
    assert replaced == {
        "schemas": [USER],
        "id": user["id"],
        "meta": replaced["meta"],
        "userName": "ada2",
        "name": {"givenName": "A"},
        "active": True,
    }
    assert replaced["meta"]["created"] == user["meta"]["created"]
    assert last_modified(replaced) >= last_modified(user)


async def test_a_replacement_that_says_nothing_of_active_changes_nothing_of_it(
    invited: Directory,
) -> None:
    user = await invited.add("ada", active=False)

    body = {"schemas": [USER], "userName": "ada", "externalId": "x1"}
    response = await invited.ask("PUT", f"/Users/{user['id']}", json=body)

    assert response.json()["active"] is False


async def test_the_id_is_not_for_the_provider_to_choose(invited: Directory) -> None:
    user = await invited.add("ada", id="a" * 24)
    assert user["id"] != "a" * 24

    body = {"schemas": [USER], "userName": "ada", "id": "a" * 24, "externalId": "x"}
    replaced = await invited.ask("PUT", f"/Users/{user['id']}", json=body)

    assert replaced.json()["id"] == user["id"]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_a_change_of_another_version_is_refused(invited: Directory, method: str) -> None:
    user = await invited.add("ada")
    await invited.set_active(user, False)
    body: dict[str, Any] = {"schemas": [USER], "userName": "bob"}
    if method == "PATCH":
        body = {
            "schemas": [PATCH],
            "Operations": [{"op": "replace", "path": "userName", "value": "bob"}],
        }
    path = f"/Users/{user['id']}"

    stale = await invited.ask(method, path, json=body, headers={"if-match": 'W/"1"'})
    assert (stale.status_code, stale.json()["status"]) == (412, "412")
    assert await invited.user_names() == ["ada"]

    fresh = await invited.ask(method, path, json=body, headers={"if-match": 'W/"2"'})
    assert fresh.status_code == (204 if method == "DELETE" else 200)


async def test_a_known_version_is_not_sent_again(invited: Directory) -> None:
    user = await invited.add("ada")

    response = await invited.ask("GET", f"/Users/{user['id']}", headers={"if-none-match": 'W/"1"'})

    assert (response.status_code, response.content) == (304, b"")
    assert response.headers["etag"] == 'W/"1"'


async def test_a_change_that_changes_nothing_keeps_the_version(invited: Directory) -> None:
    user = await invited.add("ada")

    assert await invited.set_active(user, True) == user


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        pytest.param({"attributes": "userName"}, {"schemas", "id", "userName"}, id="only one"),
        pytest.param(
            {"attributes": "NAME.givenname"}, {"schemas", "id", "name"}, id="a part of one"
        ),
        pytest.param(
            {"excludedAttributes": "emails,meta,name"},
            {"schemas", "id", "externalId", "userName", "active"},
            id="all but some",
        ),
    ],
)
async def test_attributes_may_be_chosen(
    invited: Directory, query: dict[str, str], shown: set[str]
) -> None:
    user = await invited.add("ada@corp.test", **ADA)

    one = await invited.ask("GET", f"/Users/{user['id']}", params=query)
    many = await invited.ask("GET", "/Users", params=query)

    assert set(one.json()) == shown
    assert many.json()["Resources"] == [one.json()]


async def test_a_deleted_user_is_gone_and_no_member(database: Database, invited: Directory) -> None:
    await a_person(database, "ada", "ada@corp.test")
    user = await invited.add("ada@corp.test")

    response = await invited.ask("DELETE", f"/Users/{user['id']}")

    assert (response.status_code, response.content) == (204, b"")
    assert (await invited.ask("GET", f"/Users/{user['id']}")).status_code == 404
    assert (await invited.ask("DELETE", f"/Users/{user['id']}")).status_code == 404
    assert await role_of(database, invited.organization, "ada") is None
    # The account is the person's own.
    assert (await a_user(database, "ada")).disabled_at is None


async def test_a_search_may_come_in_a_body(invited: Directory) -> None:
    await invited.add("ada")
    await invited.add("bob")
    body = {
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:SearchRequest"],
        "filter": 'userName eq "bob"',
        "attributes": ["userName"],
        "startIndex": 1,
        "count": 5,
    }

    response = await invited.ask("POST", "/Users/.search", json=body)

    [bob] = response.json()["Resources"]
    assert response.json() == {
        "schemas": [LIST],
        "totalResults": 1,
        "startIndex": 1,
        "itemsPerPage": 1,
        "Resources": [{"schemas": [USER], "id": bob["id"], "userName": "bob"}],
    }


async def test_every_change_stands_in_the_audit_log(database: Database, invited: Directory) -> None:
    await a_person(database, "ada", "ada@corp.test")
    user = await invited.add("ada@corp.test")
    await invited.set_active(user, False)
    await invited.ask("DELETE", f"/Users/{user['id']}")

    async with database.read() as conn:
        lines = await audit.list_of(conn, invited.organization.id, AuditFilter())
    told = [(line.actor_name, line.action, line.target) for line in reversed(lines)][2:]
    assert told == [
        ("olga", "scim-user.create", "ada@corp.test"),
        ("olga", "member.add", "ada"),
        ("olga", "scim-user.activate", "ada@corp.test"),
        ("olga", "scim-user.update", "ada@corp.test"),
        ("olga", "member.remove", "ada"),
        ("olga", "scim-user.deactivate", "ada@corp.test"),
        ("olga", "scim-user.delete", "ada@corp.test"),
    ]


async def test_a_member_without_a_right_to_it_hears_nothing_of_the_directory(
    client: httpx2.AsyncClient, database: Database, invited: Directory
) -> None:
    await a_person(database, "ada", "ada@corp.test")
    user = await invited.add("ada@corp.test")
    ada: Headers = await sign_in(database, "ada")

    response = await client.get(f"{invited.path}/Users/{user['id']}", headers=ada)

    assert response.status_code == 403
