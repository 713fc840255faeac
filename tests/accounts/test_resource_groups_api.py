"""Resource groups of an organization."""

from typing import Any

import httpx2
import pytest

from account_responses import audit_lines, pages_of
from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from hublet.events import (
    ResourceGroupCreated,
    ResourceGroupDeleted,
    ResourceGroupUpdated,
)
from hublet.tokens.records import TokenRole
from outbox_events import published_events
from people import Headers, an_organization, sign_in

PATH = "/api/organizations/engines/resource-groups"


async def engines(
    database: Database, *, plan: OrganizationPlan = OrganizationPlan.team, **members: Role
) -> str:
    """Create the organization that ada administers, and return its id."""
    everybody = {"ada": Role.admin} | members
    return (await an_organization(database, "engines", plan=plan, members=everybody)).id


async def create(
    client: httpx2.AsyncClient, headers: Headers, name: str = "red", **more: str
) -> dict[str, Any]:
    response = await client.post(PATH, headers=headers, json={"name": name} | more)
    assert response.status_code == 200
    created: dict[str, Any] = response.json()
    return created


async def test_an_administrator_creates_a_group(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization_id = await engines(database)

    created = await create(client, ada, " Red team ", description="What is red.")

    assert created == {
        "id": created["id"],
        "name": "Red team",
        "description": "What is red.",
        "createdAt": created["createdAt"],
    }
    assert (await client.get(PATH, headers=ada)).json() == [created]
    one = await client.get(f"{PATH}/{created['id']}", headers=ada)
    assert one.json() == created | {"members": []}
    assert await audit_lines(client, ada) == [("resource-group.create", "Red team", {})]
    assert await published_events(database, ResourceGroupCreated) == [
        {
            "organization_id": organization_id,
            "resource_group_id": created["id"],
            "name": "Red team",
        }
    ]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "name is required."),
        ({"name": "  "}, "name must have at least 1 character(s)."),
        ({"name": "x" * 65}, "name must have at most 64 characters."),
        ({"name": "x", "description": "x" * 501}, "description must have at most 500 characters."),
        ({"name": "x", "color": "red"}, "color is not a known field."),
    ],
)
async def test_a_group_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    body: dict[str, str],
    sentence: str,
) -> None:
    await engines(database)

    response = await client.post(PATH, headers=ada, json=body)

    assert (response.status_code, response.json()) == (400, {"error": sentence})


async def test_a_name_is_unique_in_its_organization_only(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database)
    await an_organization(
        database, "looms", plan=OrganizationPlan.team, members={"ada": Role.admin}
    )
    await create(client, ada, "Röd")
    blue = await create(client, ada, "x" * 64)

    taken = await client.post(PATH, headers=ada, json={"name": "RÖD"})
    renamed = await client.patch(f"{PATH}/{blue['id']}", headers=ada, json={"name": "RÖD"})
    elsewhere = await client.post(
        "/api/organizations/looms/resource-groups", headers=ada, json={"name": "Röd"}
    )

    assert (taken.status_code, taken.json()) == (
        409,
        {"error": "The organization has a resource group RÖD already."},
    )
    assert (renamed.status_code, renamed.json()) == (taken.status_code, taken.json())
    assert elsewhere.status_code == 200


async def test_a_group_can_be_changed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization_id = await engines(database)
    group = await create(client, ada, "red", description="What is red.")
    path = f"{PATH}/{group['id']}"

    renamed = await client.patch(path, headers=ada, json={"name": "Red"})
    emptied = await client.patch(path, headers=ada, json={"description": ""})
    kept = await client.patch(path, headers=ada, json={})

    assert renamed.json() == group | {"name": "Red"}
    assert emptied.json() == kept.json() == group | {"name": "Red", "description": ""}
    assert (await client.get(PATH, headers=ada)).json() == [kept.json()]
    assert (await audit_lines(client, ada))[1:] == [
        ("resource-group.update", "red", {"name": "Red", "description": "What is red."}),
        ("resource-group.update", "Red", {"name": "Red", "description": ""}),
    ]
    fact = {"organization_id": organization_id, "resource_group_id": group["id"], "name": "Red"}
    assert await published_events(database, ResourceGroupUpdated) == [fact, fact]


async def test_a_deleted_group_is_gone_with_its_members(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization_id = await engines(database)
    group = await create(client, ada)
    path = f"{PATH}/{group['id']}"
    await client.put(f"{path}/members/ada", headers=ada, json={"role": "admin"})

    deleted = await client.delete(path, headers=ada)
    again = await client.delete(path, headers=ada)

    assert (deleted.status_code, deleted.json()) == (200, {})
    assert (again.status_code, again.json()) == (
        404,
        {"error": f"There is no resource group {group['id']}."},
    )
    assert (await client.get(PATH, headers=ada)).json() == []
    assert (await audit_lines(client, ada))[-1] == ("resource-group.delete", "red", {})
    assert await published_events(database, ResourceGroupDeleted) == [
        {"organization_id": organization_id, "resource_group_id": group["id"], "name": "red"}
    ]
    await create(client, ada, "red")


async def test_other_members_see_the_groups_they_are_in(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database, bob=Role.write)
    red, blue = await create(client, ada, "red"), await create(client, ada, "blue")
    bob = await sign_in(database, "bob")
    await client.put(f"{PATH}/{red['id']}/members/bob", headers=ada, json={"role": "read"})

    listed = await client.get(PATH, headers=bob)
    inside = await client.get(f"{PATH}/{red['id']}", headers=bob)
    outside = await client.get(f"{PATH}/{blue['id']}", headers=bob)

    assert listed.json() == [red]
    assert [member["user"] for member in inside.json()["members"]] == ["bob"]
    assert (outside.status_code, outside.json()) == (
        404,
        {"error": f"There is no resource group {blue['id']}."},
    )


async def test_groups_come_page_by_page(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database)
    for name in ("red", "green", "blue"):
        await create(client, ada, name)

    pages = await pages_of(client, f"{PATH}?limit=2", "name", ada)

    assert pages == [["red", "green"], ["blue"]]


async def test_a_group_of_another_organization_is_not_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database)
    await an_organization(
        database, "looms", plan=OrganizationPlan.team, members={"ada": Role.admin}
    )
    group = await create(client, ada)
    path = f"/api/organizations/looms/resource-groups/{group['id']}"

    statuses = [
        (await client.request(method, path + more, headers=ada, json=body)).status_code
        for method, more, body in CHANGES
    ]

    assert statuses == [404] * len(CHANGES)


CHANGES: list[tuple[str, str, object]] = [
    ("GET", "", None),
    ("PATCH", "", {"name": "blue"}),
    ("DELETE", "", None),
    ("PUT", "/members/ada", {"role": "read"}),
    ("DELETE", "/members/ada", None),
]


async def test_the_plan_must_include_groups(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database, plan=OrganizationPlan.free)
    sentence = "Resource groups need the plan team or a larger one, which engines does not have."

    answers = [
        await client.request(method, f"{PATH}/{'0' * 24}{more}", headers=ada, json=body)
        for method, more, body in CHANGES
    ]
    answers += [
        await client.get(PATH, headers=ada),
        await client.post(PATH, headers=ada, json={"name": "red"}),
    ]

    assert {answer.status_code for answer in answers} == {403}
    assert {answer.json()["error"] for answer in answers} == {sentence}


@pytest.mark.parametrize(
    ("method", "more", "body"), [*CHANGES[1:], ("POST", None, {"name": "blue"})]
)
async def test_others_may_not_change_groups(
    client: httpx2.AsyncClient, database: Database, method: str, more: str | None, body: object
) -> None:
    await engines(database, bob=Role.write)
    group = await create(client, await sign_in(database, "ada"))
    path = PATH if more is None else f"{PATH}/{group['id']}{more}"
    callers: list[Headers] = [
        {},
        await sign_in(database, "eve"),
        await sign_in(database, "bob"),
        await sign_in(database, "ada", role=TokenRole.read),
        await sign_in(database, "ada", scopes=["read-memberships"]),
    ]

    answers = [
        await client.request(method, path, headers=headers, json=body) for headers in callers
    ]

    assert [answer.status_code for answer in answers] == [401, 403, 403, 403, 403]
    role = {"error": "This needs the role admin in the organization engines."}
    assert [answer.json() for answer in answers[1:3]] == [role, role]


async def test_a_stranger_sees_no_group(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database)
    group = await create(client, ada)
    eve = await sign_in(database, "eve")

    for path in (PATH, f"{PATH}/{group['id']}"):
        response = await client.get(path, headers=eve)
        assert response.status_code == 403
        assert response.json() == {"error": "This needs the role read in the organization engines."}
