"""Members, groups, handles and the audit log at the public service's own addresses."""

import json

import httpx2
import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import store as organization_store
from hublet.accounts.records import OPERATOR, Organization, OrganizationPlan, Role
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo, a_resource_group

ROOT = "/api/organizations/engines"


@pytest.fixture
async def engines(database: Database) -> Organization:
    return await an_organization(
        database,
        "engines",
        plan=OrganizationPlan.enterprise,
        members={"ada": Role.admin, "bob": Role.read},
    )


async def verify(database: Database, user: str, address: str) -> None:
    person = await a_user(database, user)
    async with database.transaction() as conn:
        await accounts.add_email(conn, person, address, verified=True)


async def test_members_have_roles_and_groups_at_one_address(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: Organization
) -> None:
    rockets = await a_resource_group(database, engines)
    await verify(database, "bob", "bob@example.com")
    groups = [{"id": rockets.id, "role": "write"}]

    changed = await client.put(
        f"{ROOT}/members/bob/role", headers=ada, json={"role": "write", "resourceGroups": groups}
    )
    found = await client.get(f"{ROOT}/members?search=BO", headers=ada)
    by_address = await client.get(f"{ROOT}/members?email=BOB@example.com", headers=ada)

    assert (changed.status_code, changed.json()["role"]) == (200, "write")
    assert found.json() == by_address.json()
    assert [(each["user"], each["role"]) for each in found.json()] == [("bob", "write")]
    assert found.json()[0]["verifiedEmail"] == "bob@example.com"
    assert found.json()[0]["resourceGroups"] == [
        {"id": rockets.id, "name": "rockets", "numUsers": 1, "role": "write"}
    ]
    groups[0]["role"] = "no_access"
    body = {"role": "write", "resourceGroups": groups}
    await client.put(f"{ROOT}/members/bob/role", headers=ada, json=body)
    after = await client.get(f"{ROOT}/members?search=bob", headers=ada)
    assert after.json()[0]["resourceGroups"] == []


async def test_addresses_of_members_are_for_administrators(
    client: httpx2.AsyncClient, database: Database, engines: Organization
) -> None:
    bob = await sign_in(database, "bob")

    refused = await client.get(f"{ROOT}/members?email=a@example.com", headers=bob)
    listed = await client.get(f"{ROOT}/members?limit=1")

    assert refused.status_code == 403
    assert "verifiedEmail" not in listed.json()[0]
    assert 'rel="next"' in listed.headers["link"]


@pytest.mark.parametrize(
    ("user", "role", "status"),
    [("bob", "no_access", 400), ("eve", "read", 404), ("ada", "read", 409), ("bob", "owner", 400)],
)
async def test_a_role_that_cannot_be_is_refused(
    client: httpx2.AsyncClient,
    database: Database,
    engines: Organization,
    user: str,
    role: str,
    status: int,
) -> None:
    await a_user(database, "eve")
    ada = await sign_in(database, "ada")

    response = await client.put(f"{ROOT}/members/{user}/role", headers=ada, json={"role": role})

    assert response.status_code == status


async def test_a_wrong_group_changes_no_role(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: Organization
) -> None:
    body = {"role": "admin", "resourceGroups": [{"id": "a" * 24, "role": "read"}]}

    refused = await client.put(f"{ROOT}/members/bob/role", headers=ada, json=body)

    assert refused.status_code == 404
    listed = await client.get(f"{ROOT}/members?search=bob", headers=ada)
    assert listed.json()[0]["role"] == "read"


async def test_members_of_a_group_are_added_changed_and_removed(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: Organization
) -> None:
    group = await a_resource_group(database, engines)
    path = f"{ROOT}/resource-groups/{group.id}/users"
    await a_repo(client, ada, "engines/secret", private=True, resourceGroupId=group.id)

    added = await client.post(path, headers=ada, json={"users": [{"user": "bob", "role": "read"}]})
    changed = await client.patch(f"{path}/bob", headers=ada, json={"role": "write"})
    removed = await client.delete(f"{path}/bob", headers=ada)
    gone = await client.patch(f"{path}/bob", headers=ada, json={"role": "write"})

    assert added.json()["resources"] == [
        {"type": "model", "name": "engines/secret", "private": True}
    ]
    assert [(each["name"], each["role"]) for each in changed.json()["users"]] == [("bob", "write")]
    assert (removed.json()["users"], removed.json()["autoJoin"]) == ([], {"enabled": False})
    assert gone.status_code == 404


async def test_all_of_them_are_added_or_none(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: Organization
) -> None:
    group = await a_resource_group(database, engines)
    await a_user(database, "eve")
    users = [{"user": "bob", "role": "read"}, {"name": "eve", "role": "read"}]

    refused = await client.post(
        f"{ROOT}/resource-groups/{group.id}/users", headers=ada, json={"users": users}
    )

    assert refused.status_code == 404
    async with database.read() as conn:
        assert await organization_store.list_group_members(conn, group.id) == []


async def test_members_of_today_and_of_later_join_a_group_by_themselves(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: Organization
) -> None:
    group = await a_resource_group(database, engines, members={"ada": Role.admin})
    path = f"{ROOT}/resource-groups/{group.id}/settings"
    join = {"enabled": True, "role": "write", "scope": "all"}
    eve = await a_user(database, "eve")

    settled = await client.post(path, headers=ada, json={"autoJoin": join})
    async with database.transaction() as conn:
        await organizations.set_member(conn, OPERATOR, engines, eve, Role.read)
    off = await client.post(path, headers=ada, json={"autoJoin": {"enabled": False}})

    assert settled.json()["autoJoin"] == join
    assert {each["name"]: each["role"] for each in settled.json()["users"]} == {
        "ada": "admin",
        "bob": "write",
    }
    assert {each["name"] for each in off.json()["users"]} == {"ada", "bob", "eve"}


async def test_a_group_that_scim_fills_is_not_joined(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: Organization
) -> None:
    group = await a_resource_group(database, engines)
    async with database.transaction() as conn:
        await conn.execute(
            """
            INSERT INTO scim_groups (id, organization_id, managed, display_name, display_name_key,
                created_at, updated_at, version) VALUES ($1, $2, $3, $4, $4, 1, 1, 1)
            """,
            new_object_id(), engines.id, False, "engines:rockets:write",
        )  # fmt: skip

    refused = await client.post(
        f"{ROOT}/resource-groups/{group.id}/settings",
        headers=ada,
        json={"autoJoin": {"enabled": True, "role": "read"}},
    )

    assert refused.status_code == 409


async def test_the_audit_log_is_exported_as_lines_or_as_an_array(
    client: httpx2.AsyncClient, ada: Headers, engines: Organization
) -> None:
    await client.patch(ROOT, headers=ada, json={"fullname": "The Engines"})

    lines = await client.get(f"{ROOT}/audit-log/export", headers=ada)
    array = await client.get(
        f"{ROOT}/audit-log/export?q=author:ada type:organization",
        headers=ada | {"Accept": "application/json"},
    )
    nothing = await client.get(f"{ROOT}/audit-log/export?q=ip:192.0.2.1", headers=ada)

    exported = [json.loads(line) for line in lines.text.splitlines()]
    assert [each["type"] for each in exported] == [
        "organization.update", "member.add", "member.add", "organization.create",
    ]  # fmt: skip
    assert array.json() == exported[:1]
    assert exported[0]["author"]["user"] == "ada"
    assert exported[0]["data"] == {"target": "engines", "fullname": "The Engines"}
    assert exported[1]["author"] == {"user": "operator", "type": "system"}
    assert (nothing.status_code, nothing.text) == (200, "")


async def test_handles_in_other_networks_are_changed_and_shown(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: Organization
) -> None:
    body = {"github": "@ada", "bluesky": "ada.example.com"}
    await client.patch("/api/settings/socials", headers=ada, json=body)
    await client.patch("/api/settings/socials", headers=ada, json={"bluesky": ""})
    wrong = await client.patch(
        "/api/settings/socials", headers=ada, json={"twitter": "https://x.com/ada"}
    )
    await client.patch(f"{ROOT}/socials", headers=ada, json={"linkedin": "engines"})
    bob = await sign_in(database, "bob")
    refused = await client.patch(f"{ROOT}/socials", headers=bob, json={"github": "eve"})

    person = (await client.get("/api/users/ada/socials")).json()
    assert (person["user"], person["socialHandles"]) == ("ada", {"github": "ada"})
    assert (wrong.status_code, wrong.json()["error"][:9]) == (400, "twitter: ")
    assert (await client.get(f"{ROOT}/socials")).json() == {
        "_id": engines.id,
        "org": "engines",
        "socialHandles": {"linkedin": "engines"},
    }
    assert refused.status_code == 403


async def test_a_picture_is_found_by_a_name(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: Organization
) -> None:
    organization = await client.get("/api/avatars/engines")
    person = await client.get("/api/avatars/ada")
    nobody = await client.get("/api/avatars/nobody")

    assert organization.headers["location"] == f"http://hub.test/avatars/{engines.id}"
    assert (person.status_code, nobody.status_code) == (302, 404)


async def test_followed_organizations_are_listed(
    client: httpx2.AsyncClient, ada: Headers, engines: Organization
) -> None:
    await client.post(f"{ROOT}/follow", headers=ada)

    listed = (await client.get("/api/users/ada/following/orgs")).json()

    assert [(each["name"], each["type"]) for each in listed] == [("engines", "org")]


async def test_people_ask_to_join_and_are_accepted_or_declined(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: Organization
) -> None:
    eve, dan = await sign_in(database, "eve"), await sign_in(database, "dan")
    path = f"{ROOT}/join-requests"

    asked = await client.post(path, headers=eve, json={"message": "Please."})
    await client.post(path, headers=dan)
    listed = await client.get(path, headers=ada)
    accepted = await client.post(f"{path}/eve/accept", headers=ada, json={"role": "write"})
    declined = await client.post(f"{path}/dan/decline", headers=ada, json={"reason": "Full."})

    assert asked.json() == {"status": "pending"}
    assert [(each["user"], each["message"]) for each in listed.json()] == [
        ("eve", "Please."),
        ("dan", ""),
    ]
    assert (accepted.status_code, declined.status_code) == (200, 200)
    assert (await client.get(path, headers=ada)).json() == []
    assert (await client.get(path, headers=eve)).status_code == 403
    assert (await client.delete(path, headers=dan)).status_code == 200


async def test_who_has_a_verified_address_of_a_domain_joins_at_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: Organization
) -> None:
    eve, dan = await sign_in(database, "eve"), await sign_in(database, "dan")
    await verify(database, "eve", "eve@engines.example")
    async with database.transaction() as conn:
        person = await accounts.get_user(conn, "dan")
        await accounts.add_email(conn, person, "dan@engines.example", verified=False)
    path = f"{ROOT}/settings/email-domains"

    domains = await client.put(f"{path}/Engines.example", headers=ada, json={"role": "write"})
    joined = await client.post(f"{ROOT}/join-requests", headers=eve)
    waiting = await client.post(f"{ROOT}/join-requests", headers=dan)

    assert [(each["domain"], each["role"]) for each in domains.json()] == [
        ("engines.example", "write")
    ]
    assert (joined.json(), waiting.json()) == ({"status": "member"}, {"status": "pending"})
    assert (await client.put(f"{path}/no domain", headers=ada, json={})).status_code == 400
    assert (await client.delete(f"{path}/engines.example", headers=ada)).status_code == 200
    assert (await client.delete(f"{path}/engines.example", headers=ada)).status_code == 404
    assert (await client.get(path, headers=eve)).status_code == 403
