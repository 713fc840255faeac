"""Members of an organization: who may add, promote and remove whom."""

import httpx2
import pytest

from account_responses import audit_lines, pages_of, user_card
from hublet.accounts.records import OrganizationPlan, Role
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.events import (
    MemberAdded,
    MemberRemoved,
    MemberRoleChanged,
    ResourceGroupMemberRemoved,
)
from hublet.tokens.records import TokenRole
from outbox_events import published_events
from people import Headers, a_user, an_organization, sign_in

PATH = "/api/organizations/engines/members"

NO_ADMINISTRATOR = {
    "error": "engines would be left without an administrator: make somebody else one first."
}


async def disable(database: Database, name: str) -> None:
    user = await a_user(database, name)
    async with database.transaction() as conn:
        await accounts.disable_user(conn, user)


async def roles(client: httpx2.AsyncClient) -> dict[str, str]:
    return {member["user"]: member["role"] for member in (await client.get(PATH)).json()}


async def test_an_administrator_adds_a_member_and_changes_the_role(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization = await an_organization(database, "engines", members={"ada": Role.admin})
    bob = await a_user(database, "bob")

    answers = [
        await client.put(f"{PATH}/BOB", headers=ada, json={"role": role})
        for role in ("read", "read", "contributor")
    ]

    assert [answer.json() for answer in answers] == [
        user_card(bob, role="read"), user_card(bob, role="read"), user_card(bob, role="contributor"),
    ]  # fmt: skip
    assert await roles(client) == {"ada": "admin", "bob": "contributor"}
    assert await audit_lines(client, ada) == [
        ("member.add", "bob", {"role": "read"}),
        ("member.role", "bob", {"role": "contributor"}),
    ]
    fact = {"organization_id": organization.id, "user_id": bob.id}
    joined = fact | {"role": "read", "actor_id": (await a_user(database, "ada")).id}
    assert joined in await published_events(database, MemberAdded)
    assert await published_events(database, MemberRoleChanged) == [fact | {"role": "contributor"}]


async def test_an_administrator_removes_a_member(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization = await an_organization(
        database, "engines", members={"ada": Role.admin, "bob": Role.admin}
    )
    bob = await a_user(database, "bob")

    removed = await client.delete(f"{PATH}/bob", headers=ada)
    again = await client.delete(f"{PATH}/bob", headers=ada)

    assert (removed.status_code, removed.json()) == (200, {})
    assert (again.status_code, again.json()) == (
        404,
        {"error": "bob is not a member of engines."},
    )
    assert await roles(client) == {"ada": "admin"}
    assert await audit_lines(client, ada) == [("member.remove", "bob", {})]
    assert await published_events(database, MemberRemoved) == [
        {"organization_id": organization.id, "user_id": bob.id}
    ]


async def test_anybody_may_leave(client: httpx2.AsyncClient, database: Database) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin, "bob": Role.read})
    bob = await sign_in(database, "bob")

    response = await client.delete(f"{PATH}/Bob", headers=bob)

    assert response.status_code == 200
    assert await roles(client) == {"ada": "admin"}


async def test_a_removed_member_leaves_the_resource_groups_too(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization = await an_organization(
        database,
        "engines",
        plan=OrganizationPlan.team,
        members={"ada": Role.admin, "bob": Role.read},
    )
    groups = "/api/organizations/engines/resource-groups"
    ids: list[str] = []
    for name in ("red", "blue"):
        group = (await client.post(groups, headers=ada, json={"name": name})).json()
        await client.put(f"{groups}/{group['id']}/members/bob", headers=ada, json={"role": "write"})
        ids.append(group["id"])

    await client.delete(f"{PATH}/bob", headers=ada)

    for group_id in ids:
        assert (await client.get(f"{groups}/{group_id}", headers=ada)).json()["members"] == []
    assert (await audit_lines(client, ada))[-1] == (
        "member.remove",
        "bob",
        {"resource_groups": ["red", "blue"]},
    )
    bob = await a_user(database, "bob")
    assert await published_events(database, ResourceGroupMemberRemoved) == [
        {"organization_id": organization.id, "resource_group_id": group_id, "user_id": bob.id}
        for group_id in ids
    ]


@pytest.mark.parametrize("change", ["leave", "demote"])
async def test_the_last_administrator_stays(
    client: httpx2.AsyncClient, database: Database, ada: Headers, change: str
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin, "bob": Role.write})

    response = (
        await client.delete(f"{PATH}/ada", headers=ada)
        if change == "leave"
        else await client.put(f"{PATH}/ada", headers=ada, json={"role": "write"})
    )

    assert (response.status_code, response.json()) == (409, NO_ADMINISTRATOR)
    assert await roles(client) == {"ada": "admin", "bob": "write"}


async def test_a_disabled_administrator_does_not_count_as_one(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin, "bob": Role.admin})
    await disable(database, "bob")

    leaving = await client.delete(f"{PATH}/ada", headers=ada)
    removing = await client.delete(f"{PATH}/bob", headers=ada)

    assert (leaving.status_code, leaving.json()) == (409, NO_ADMINISTRATOR)
    assert removing.status_code == 200


@pytest.mark.parametrize(("method", "body"), [("PUT", {"role": "admin"}), ("DELETE", None)])
async def test_others_may_not_change_members(
    client: httpx2.AsyncClient, database: Database, ada: Headers, method: str, body: object
) -> None:
    members = {"bob": Role.write, "eve": Role.admin, "joe": Role.read}
    await an_organization(database, "engines", members=members)
    bob = await sign_in(database, "bob")
    reading = await sign_in(database, "eve", role=TokenRole.read)
    scoped = await sign_in(database, "eve", scopes=["read-memberships"])

    answers = [
        await client.request(method, f"{PATH}/joe", headers=headers, json=body)
        for headers in ({}, ada, bob, reading, scoped)
    ]

    assert [answer.status_code for answer in answers] == [401, 403, 403, 403, 403]
    role = {"error": "This needs the role admin in the organization engines."}
    assert [answer.json() for answer in answers[1:3]] == [role, role]
    assert await roles(client) == {name: str(role) for name, role in members.items()}


async def test_nobody_promotes_oneself(client: httpx2.AsyncClient, database: Database) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin, "bob": Role.write})
    bob = await sign_in(database, "bob")

    response = await client.put(f"{PATH}/bob", headers=bob, json={"role": "admin"})

    assert response.status_code == 403
    assert await roles(client) == {"ada": "admin", "bob": "write"}


@pytest.mark.parametrize(
    ("user", "body", "status", "sentence"),
    [
        pytest.param("nobody", {"role": "read"}, 404, "There is no user nobody.", id="unknown"),
        pytest.param("gone", {"role": "read"}, 404, "There is no user gone.", id="disabled"),
        pytest.param(
            "bob",
            {"role": "owner"},
            400,
            "role must be one of 'read', 'contributor', 'write' or 'admin'.",
            id="a role that does not exist",
        ),
        pytest.param("bob", {}, 400, "role is required.", id="no role"),
    ],
)
async def test_a_member_who_cannot_be_is_refused(  # noqa: PLR0917 - a table of four columns
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    user: str,
    body: object,
    status: int,
    sentence: str,
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})
    await a_user(database, "bob")
    await a_user(database, "gone")
    await disable(database, "gone")

    response = await client.put(f"{PATH}/{user}", headers=ada, json=body)

    assert (response.status_code, response.json()) == (status, {"error": sentence})


async def test_members_come_page_by_page(client: httpx2.AsyncClient, database: Database) -> None:
    names = [f"user-{number}" for number in range(5)]
    await an_organization(database, "engines", members=dict.fromkeys(names, Role.read))

    pages = await pages_of(client, f"{PATH}?limit=2", "user")

    assert pages == [names[:2], names[2:4], names[4:]]


async def test_a_service_account_stays_where_it_belongs(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    for name in ("engines", "looms"):
        await an_organization(
            database, name, plan=OrganizationPlan.enterprise, members={"ada": Role.admin}
        )
    await client.post(
        "/api/organizations/engines/service-accounts",
        headers=ada,
        json={"name": "bot", "role": "read"},
    )

    elsewhere = await client.put(
        "/api/organizations/looms/members/bot", headers=ada, json={"role": "read"}
    )
    promoted = await client.put(f"{PATH}/bot", headers=ada, json={"role": "write"})
    removed = await client.delete(f"{PATH}/bot", headers=ada)

    assert (elsewhere.status_code, elsewhere.json()) == (
        400,
        {"error": "bot is a service account: it belongs to no organization but its own."},
    )
    assert (promoted.json()["role"], promoted.json()["type"]) == ("write", "service-account")
    assert (removed.status_code, removed.json()) == (
        400,
        {"error": "bot is a service account: delete the account, not its membership."},
    )
