"""Changing the settings of repositories."""

from typing import Any

import httpx2
import pytest

from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from hublet.events import RepoConfigUpdated
from outbox_events import published_events
from people import Headers, an_organization, sign_in
from repositories import a_repo, a_resource_group

SETTINGS = "/api/models/ada/engine/settings"
UNTOUCHED = {
    "visibility": "public",
    "private": False,
    "gated": False,
    "discussionsDisabled": False,
}


@pytest.mark.parametrize(
    ("body", "changed", "published"),
    [
        pytest.param(
            {"visibility": "private"},
            {"visibility": "private", "private": True},
            {"private": True, "visibility": "private"},
            id="private by visibility",
        ),
        pytest.param(
            {"private": True},
            {"visibility": "private", "private": True},
            {"private": True, "visibility": "private"},
            id="private by flag",
        ),
        pytest.param({"gated": "auto"}, {"gated": "auto"}, {"gated": "auto"}, id="a gate"),
        pytest.param(
            {"gated": "manual", "visibility": "private"},
            {"gated": "manual", "visibility": "private", "private": True},
            {"gated": "manual", "private": True, "visibility": "private"},
            id="a gate for a private repository",
        ),
        pytest.param(
            {"discussionsDisabled": True},
            {"discussionsDisabled": True},
            {"discussionsDisabled": True},
            id="no discussions",
        ),
    ],
)
async def test_a_change_is_answered_kept_and_told(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    body: dict[str, Any],
    changed: dict[str, Any],
    published: dict[str, Any],
) -> None:
    await a_repo(client, ada, "ada/engine")

    answer = await client.put(SETTINGS, headers=ada, json=body)
    kept = await client.put(SETTINGS, headers=ada, json={})

    assert (answer.status_code, answer.json()) == (200, UNTOUCHED | changed)
    assert kept.json() == UNTOUCHED | changed
    [event] = await published_events(database, RepoConfigUpdated)
    assert event["updated_config"] == published
    assert event["repo"]["private"] is (UNTOUCHED | changed)["private"]


async def test_what_changes_nothing_is_not_told(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")

    answer = await client.put(SETTINGS, headers=ada, json=UNTOUCHED)

    assert (answer.status_code, answer.json()) == (200, UNTOUCHED)
    assert await published_events(database, RepoConfigUpdated) == []


async def test_one_change_after_the_other_keeps_them_all(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")

    for body in ({"gated": "manual"}, {"discussionsDisabled": True}, {"private": True}):
        await client.put(SETTINGS, headers=ada, json=body)

    kept = await client.put(SETTINGS, headers=ada, json={})
    assert kept.json() == {
        "visibility": "private",
        "private": True,
        "gated": "manual",
        "discussionsDisabled": True,
    }


async def test_a_gate_can_be_taken_away(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    await client.put(SETTINGS, headers=ada, json={"gated": "manual"})

    answer = await client.put(SETTINGS, headers=ada, json={"gated": False})

    assert answer.json() == UNTOUCHED
    published = [
        event["updated_config"] for event in await published_events(database, RepoConfigUpdated)
    ]
    assert published == [{"gated": "manual"}, {"gated": False}]


async def test_a_space_can_be_protected(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/app", type="space", visibility="private")

    answer = await client.put(
        "/api/spaces/ada/app/settings", headers=ada, json={"visibility": "protected"}
    )

    assert answer.json() == UNTOUCHED | {"visibility": "protected", "private": True}
    [event] = await published_events(database, RepoConfigUpdated)
    assert event["updated_config"] == {"visibility": "protected"}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        pytest.param(
            {"visibility": "protected"},
            "visibility protected is for spaces only.",
            id="a protected model",
        ),
        pytest.param(
            {"visibility": "public", "private": True},
            "private and visibility contradict each other.",
            id="a contradiction",
        ),
        pytest.param(
            {"gated": True}, "gated must be one of 'auto', 'manual' or False.", id="gated true"
        ),
        pytest.param({"colour": "red"}, "colour is not a known field.", id="an unknown field"),
    ],
)
async def test_what_does_not_go_is_refused(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, Any], sentence: str
) -> None:
    await a_repo(client, ada, "ada/engine")

    answer = await client.put(SETTINGS, headers=ada, json=body)

    assert (answer.status_code, answer.json()) == (400, {"error": sentence})


@pytest.mark.parametrize(("role", "status"), [(Role.read, 403), (Role.write, 200)])
async def test_settings_of_an_organization_need_the_role_write(
    client: httpx2.AsyncClient, database: Database, ada: Headers, role: Role, status: int
) -> None:
    await an_organization(database, "acme", members={"ada": Role.write, "bob": role})
    await a_repo(client, ada, "acme/engine")
    bob = await sign_in(database, "bob")

    answer = await client.put(
        "/api/models/acme/engine/settings", headers=bob, json={"gated": "auto"}
    )

    assert answer.status_code == status


GROUP = "/api/models/acme/engine/resource-group"


async def test_an_administrator_puts_a_repository_into_a_group_and_out_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    acme = await an_organization(
        database, "acme", plan=OrganizationPlan.team, members={"ada": Role.admin}
    )
    group = await a_resource_group(database, acme)
    await a_repo(client, ada, "acme/engine")

    put = await client.post(GROUP, headers=ada, json={"resourceGroupId": group.id})
    again = await client.post(GROUP, headers=ada, json={"resourceGroupId": group.id})
    fetched = await client.get(GROUP, headers=ada)
    out = await client.post(GROUP, headers=ada, json={"resourceGroupId": None})

    expected = {"resourceGroup": {"id": group.id, "name": "rockets"}}
    assert put.json() == again.json() == fetched.json() == expected
    assert out.json() == {"resourceGroup": None}
    published = [
        event["updated_config"] for event in await published_events(database, RepoConfigUpdated)
    ]
    assert published == [{"resourceGroupId": group.id}, {"resourceGroupId": None}]
    log = await client.get("/api/organizations/acme/audit-log", headers=ada)
    lines = [line for line in log.json() if line["action"] == "repo.resource-group"]
    assert [line["details"] for line in lines] == [
        {"resource_group": None},
        {"resource_group": "rockets"},
    ]


@pytest.mark.parametrize(
    ("role", "group_role", "status"),
    [
        pytest.param(None, None, 403, id="not a member"),
        pytest.param(Role.write, None, 404, id="a member who is not in the group"),
        pytest.param(Role.read, Role.read, 200, id="a member of the group"),
    ],
)
async def test_a_group_is_shown_to_those_who_are_in_it(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    role: Role | None,
    group_role: Role | None,
    status: int,
) -> None:
    members = {"ada": Role.admin} | ({"bob": role} if role else {})
    acme = await an_organization(database, "acme", plan=OrganizationPlan.team, members=members)
    bob = await sign_in(database, "bob")
    group = await a_resource_group(
        database, acme, members={"bob": group_role} if group_role else {}
    )
    await a_repo(client, ada, "acme/engine", resourceGroupId=group.id)

    fetched = await client.get(GROUP, headers=bob)

    assert fetched.status_code == status


@pytest.mark.parametrize(
    ("plan", "role", "group_id", "status"),
    [
        pytest.param(OrganizationPlan.team, Role.write, None, 403, id="only a writer"),
        pytest.param(OrganizationPlan.team, Role.admin, "a" * 24, 404, id="an unknown group"),
        pytest.param(OrganizationPlan.free, Role.admin, "a" * 24, 403, id="a plan without groups"),
        pytest.param(OrganizationPlan.free, Role.admin, None, 200, id="out, on any plan"),
    ],
)
async def test_setting_a_group_has_its_rules(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    *,
    plan: OrganizationPlan,
    role: Role,
    group_id: str | None,
    status: int,
) -> None:
    await an_organization(database, "acme", plan=plan, members={"ada": role})
    await a_repo(client, ada, "acme/engine")

    answer = await client.post(GROUP, headers=ada, json={"resourceGroupId": group_id})

    assert answer.status_code == status


async def test_a_users_repository_is_in_no_group(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_repo(client, ada, "ada/engine")
    path = "/api/models/ada/engine/resource-group"

    fetched = await client.get(path, headers=ada)
    put = await client.post(path, headers=ada, json={"resourceGroupId": "a" * 24})

    assert fetched.json() == {"resourceGroup": None}
    assert (put.status_code, put.json()) == (
        400,
        {"error": "Only the repositories of an organization can be in a resource group."},
    )


async def test_a_group_with_repositories_is_not_deleted(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    acme = await an_organization(
        database, "acme", plan=OrganizationPlan.team, members={"ada": Role.admin}
    )
    group = await a_resource_group(database, acme)
    await a_repo(client, ada, "acme/engine", resourceGroupId=group.id)
    path = f"/api/organizations/acme/resource-groups/{group.id}"

    refused = await client.delete(path, headers=ada)
    await client.post(GROUP, headers=ada, json={"resourceGroupId": None})
    deleted = await client.delete(path, headers=ada)

    assert (refused.status_code, refused.json()) == (
        409,
        {
            "error": "rockets still has repositories or collections: "
            "take them out or delete them first."
        },
    )
    assert deleted.status_code == 200
