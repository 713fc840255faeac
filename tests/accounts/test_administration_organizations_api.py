"""Organizations as a hub administrator manages them."""

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core.clock import wire
from hublet.core.database import Database
from hublet.events import MemberAdded, MemberRemoved, OrganizationPlanChanged
from outbox_events import published_events
from people import Headers, a_user, an_organization

PATH = "/api/admin/organizations"


async def test_an_administrator_creates_an_organization_on_any_plan(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    response = await client.post(
        PATH,
        headers=admin,
        json={"name": "Engines", "plan": "enterprise-plus", "fullname": "Analytical Engines"},
    )

    assert response.status_code == 200
    created = response.json()
    assert created == {
        "id": created["id"],
        "name": "Engines",
        "fullname": "Analytical Engines",
        "plan": "enterprise-plus",
        "createdAt": created["createdAt"],
    }
    # It does not belong to who made it.
    assert (await client.get("/api/organizations/engines/members")).json() == []


async def test_the_usual_plan_is_the_free_one(client: httpx2.AsyncClient, admin: Headers) -> None:
    created = (await client.post(PATH, headers=admin, json={"name": "engines"})).json()

    assert (created["plan"], created["fullname"]) == ("free", "engines")


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"name": "root"}, 409, "The name root is taken."),
        ({"name": "x"}, 400, "A name has 2 to 42 characters."),
        (
            {"name": "engines", "plan": "plus"},
            400,
            "plan must be one of 'free', 'team', 'enterprise' or 'enterprise-plus'.",
        ),
    ],
)
async def test_an_organization_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient, admin: Headers, body: dict[str, str], status: int, sentence: str
) -> None:
    response = await client.post(PATH, headers=admin, json=body)

    assert (response.status_code, response.json()) == (status, {"error": sentence})


async def test_organizations_come_page_by_page(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    made = [await an_organization(database, name) for name in ("engines", "looms", "mills")]

    first = await client.get(f"{PATH}?limit=2", headers=admin)
    second = await client.get(first.links["next"]["url"], headers=admin)

    assert first.json() + second.json() == [
        {
            "id": organization.id,
            "name": organization.name,
            "fullname": organization.fullname,
            "plan": "free",
            "createdAt": wire(organization.created_at),
        }
        for organization in made
    ]
    assert "next" not in second.links


async def test_a_plan_can_be_changed(
    client: httpx2.AsyncClient, database: Database, admin: Headers, ada: Headers
) -> None:
    organization = await an_organization(database, "engines", members={"ada": Role.admin})

    for _ in range(2):
        response = await client.put(
            f"{PATH}/Engines/plan", headers=admin, json={"plan": "enterprise"}
        )
        assert (response.status_code, response.json()["plan"]) == (200, "enterprise")

    overview = (await client.get("/api/organizations/engines/overview")).json()
    assert overview["plan"] == "enterprise"
    assert await published_events(database, OrganizationPlanChanged) == [
        {"organization_id": organization.id, "plan": "enterprise"}
    ]
    log = await client.get("/api/organizations/engines/audit-log?actor=root", headers=ada)
    assert [(line["action"], line["details"]) for line in log.json()] == [
        ("organization.plan", {"from": "free", "to": "enterprise"})
    ]


async def test_members_can_be_set_and_removed(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    organization = await an_organization(database, "engines")
    user = await a_user(database, "ada")
    path = f"{PATH}/engines/members"

    added = await client.put(f"{path}/ADA", headers=admin, json={"role": "write"})
    removed = await client.delete(f"{path}/ada", headers=admin)
    again = await client.delete(f"{path}/ada", headers=admin)

    assert added.json() == {
        "_id": user.id,
        "user": "ada",
        "fullname": "ada",
        "avatarUrl": f"http://hub.test/avatars/{user.id}",
        "isPro": False,
        "type": "user",
        "role": "write",
    }
    assert (removed.status_code, removed.json()) == (200, {})
    assert (again.status_code, again.json()) == (
        404,
        {"error": "ada is not a member of engines."},
    )
    fact = {"organization_id": organization.id, "user_id": user.id}
    assert await published_events(database, MemberAdded, MemberRemoved) == [
        fact | {"role": "write", "actor_id": (await a_user(database, "root")).id}, fact,
    ]  # fmt: skip


@pytest.mark.parametrize(("method", "body"), [("PUT", {"role": "read"}), ("DELETE", None)])
async def test_the_last_administrator_stays_even_for_the_hubs(
    client: httpx2.AsyncClient, database: Database, admin: Headers, method: str, body: object
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})

    response = await client.request(method, f"{PATH}/engines/members/ada", headers=admin, json=body)

    assert response.status_code == 409
    assert response.json() == {
        "error": "engines would be left without an administrator: make somebody else one first."
    }


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "plan", {"plan": "team"}),
        ("PUT", "members/root", {"role": "read"}),
        ("DELETE", "members/root", None),
    ],
)
async def test_an_unknown_organization_is_not_found(
    client: httpx2.AsyncClient, admin: Headers, method: str, path: str, body: object
) -> None:
    response = await client.request(method, f"{PATH}/nowhere/{path}", headers=admin, json=body)

    assert (response.status_code, response.json()) == (
        404,
        {"error": "There is no organization nowhere."},
    )
