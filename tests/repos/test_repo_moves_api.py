"""Giving repositories other names and other owners."""

import asyncio
from typing import Any

import httpx2
import pytest

from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from hublet.events import RepoMoved
from outbox_events import published_events
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo, a_resource_group

MOVE = "/api/repos/move"


async def move(
    client: httpx2.AsyncClient, headers: Headers, old: str, new: str, **body: Any
) -> httpx2.Response:
    names = {"fromRepo": old, "toRepo": new, "type": "model"}
    return await client.post(MOVE, headers=headers, json=names | body)


async def test_a_moved_repository_is_found_under_both_names(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")

    moved = await move(client, ada, "ada/engine", "ada/Motor")
    new = await client.get("/api/models/ada/motor")
    old = await client.get("/api/models/ada/engine/revision/main?blobs=true&x=%2F")

    url = "http://hub.test/ada/Motor"
    assert moved.json() == {"url": url, "name": "ada/Motor", "id": repo_id}
    assert new.json()["id"] == "ada/Motor"
    assert old.status_code == 307
    assert old.json() == {"error": "The repository is now ada/Motor."}
    assert old.headers["location"] == "/api/models/ada/Motor/revision/main?blobs=true&x=%2F"
    [event] = await published_events(database, RepoMoved)
    ada_id = (await a_user(database, "ada")).id
    assert (event["repo"]["name"], event["moved_to_name"]) == ("ada/engine", "ada/Motor")
    assert (event["repo"]["owner_id"], event["moved_to_owner_id"]) == (ada_id, ada_id)
    assert event["actor_id"] == ada_id


async def test_names_of_a_chain_of_moves_all_lead_to_the_repository(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/one")

    await move(client, ada, "ada/one", "ada/two")
    await move(client, ada, "ada/two", "ada/three")

    for old in ("one", "two"):
        response = await client.get(f"/api/models/ada/{old}")
        assert response.headers["location"] == "/api/models/ada/three"


async def test_a_repository_can_move_back(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_repo(client, ada, "ada/one")

    await move(client, ada, "ada/one", "ada/two")
    await move(client, ada, "ada/two", "ada/one")

    assert (await client.get("/api/models/ada/one")).status_code == 200
    assert (await client.get("/api/models/ada/two")).status_code == 307


async def test_a_new_repository_may_take_an_old_name(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/one")
    await move(client, ada, "ada/one", "ada/two")

    new_id = await a_repo(client, ada, "ada/one")

    assert (await client.get("/api/models/ada/one")).json()["_id"] == new_id


async def test_a_move_onto_an_old_name_of_another_takes_that_name(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/one")
    await move(client, ada, "ada/one", "ada/two")
    other_id = await a_repo(client, ada, "ada/other")

    await move(client, ada, "ada/other", "ada/one")

    assert (await client.get("/api/models/ada/one")).json()["_id"] == other_id


@pytest.mark.parametrize("by_moving", [True, False], ids=["by moving", "by creating"])
async def test_a_name_that_another_took_leads_nowhere_when_that_one_is_gone(
    client: httpx2.AsyncClient, ada: Headers, *, by_moving: bool
) -> None:
    await a_repo(client, ada, "ada/one")
    await move(client, ada, "ada/one", "ada/two")
    await a_repo(client, ada, "ada/other" if by_moving else "ada/one")
    if by_moving:
        await move(client, ada, "ada/other", "ada/one")

    await client.request("DELETE", "/api/repos/delete", headers=ada, json={"name": "ada/one"})

    assert (await client.get("/api/models/ada/one")).status_code == 404


async def test_only_the_spelling_of_a_name_can_change(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")

    await move(client, ada, "ada/engine", "ada/Engine")
    await move(client, ada, "ada/Engine", "ada/Engine")

    assert (await client.get("/api/models/ada/engine")).json()["id"] == "ada/Engine"
    assert len(await published_events(database, RepoMoved)) == 1


async def test_what_cannot_be_undone_needs_the_name_of_today(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/one")
    await move(client, ada, "ada/one", "ada/two")

    moved = await move(client, ada, "ada/one", "ada/three")
    deleted = await client.request(
        "DELETE", "/api/repos/delete", headers=ada, json={"name": "ada/one"}
    )

    assert (moved.status_code, deleted.status_code) == (404, 404)
    assert (await client.get("/api/models/ada/two")).status_code == 200


async def test_a_name_that_is_taken_is_refused(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_repo(client, ada, "ada/one")
    await a_repo(client, ada, "ada/two")

    response = await move(client, ada, "ada/one", "ada/TWO")

    assert (response.status_code, response.json()) == (
        409,
        {
            "error": "A model repository called ada/TWO already exists.",
            "url": "http://hub.test/ada/TWO",
        },
    )
    assert (await client.get("/api/models/ada/one")).status_code == 200


async def test_the_same_name_of_another_type_is_free(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/one")
    await a_repo(client, ada, "ada/two", type="dataset")

    response = await move(client, ada, "ada/one", "ada/two")

    assert response.status_code == 200


@pytest.mark.parametrize("type_", ["dataset", "space", "kernel", "bucket", "container"])
async def test_every_type_moves(client: httpx2.AsyncClient, ada: Headers, type_: str) -> None:
    await a_repo(client, ada, "ada/one", type=type_)

    response = await move(client, ada, "ada/one", "ada/two", type=type_)

    assert response.json()["url"] == f"http://hub.test/{type_}s/ada/two"


async def test_a_repository_that_moves_to_an_organization_keeps_nothing_of_its_group(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    acme = await an_organization(
        database, "acme", plan=OrganizationPlan.team, members={"ada": Role.admin}
    )
    await an_organization(database, "globex", members={"ada": Role.contributor})
    group = await a_resource_group(database, acme)
    await a_repo(client, ada, "acme/engine", resourceGroupId=group.id)

    response = await move(client, ada, "acme/engine", "globex/engine")

    assert response.json()["name"] == "globex/engine"
    fetched = await client.get("/api/models/globex/engine/resource-group", headers=ada)
    assert fetched.json() == {"resourceGroup": None}


async def test_a_rename_keeps_the_group(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    acme = await an_organization(
        database, "acme", plan=OrganizationPlan.team, members={"ada": Role.read}
    )
    group = await a_resource_group(database, acme, members={"ada": Role.write})
    await a_repo(client, ada, "acme/engine", resourceGroupId=group.id)

    await move(client, ada, "acme/engine", "acme/motor")

    fetched = await client.get("/api/models/acme/motor/resource-group", headers=ada)
    assert fetched.json() == {"resourceGroup": {"id": group.id, "name": "rockets"}}


@pytest.mark.parametrize(
    ("old_role", "new_role", "status"),
    [
        pytest.param(Role.write, Role.contributor, 200, id="writes there, creates here"),
        pytest.param(Role.contributor, Role.contributor, 403, id="another's repository"),
        pytest.param(Role.write, Role.read, 403, id="cannot create here"),
        pytest.param(Role.write, None, 403, id="not a member here"),
    ],
)
async def test_a_change_of_owner_needs_rights_on_both_sides(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    old_role: Role,
    new_role: Role | None,
    status: int,
) -> None:
    await an_organization(database, "acme", members={"ada": Role.write, "bob": old_role})
    await an_organization(database, "globex", members={"bob": new_role} if new_role else {})
    await a_repo(client, ada, "acme/engine")
    bob = await sign_in(database, "bob")

    response = await move(client, bob, "acme/engine", "globex/engine")

    assert response.status_code == status


async def test_a_repository_cannot_be_given_to_another_user(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_user(database, "bob")
    await a_repo(client, ada, "ada/engine")

    response = await move(client, ada, "ada/engine", "bob/engine")

    assert response.status_code == 403


async def test_a_bad_name_is_refused(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_repo(client, ada, "ada/engine")

    response = await move(client, ada, "ada/engine", "ada/a..b")

    assert response.json() == {
        "error": "This is no name for a repository: it has no '--' and no '..'."
    }


async def test_the_new_name_of_a_private_repository_is_told_to_nobody_else(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await a_repo(client, ada, "ada/engine", private=True)
    await move(client, ada, "ada/engine", "ada/secret")

    response = await client.get("/api/models/ada/engine", headers=bob)

    assert (response.status_code, response.headers["x-error-code"]) == (404, "RepoNotFound")


async def test_redirects_of_a_deleted_repository_go_with_it(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/one")
    await move(client, ada, "ada/one", "ada/two")

    await client.request("DELETE", "/api/repos/delete", headers=ada, json={"name": "ada/two"})

    assert (await client.get("/api/models/ada/one")).status_code == 404


async def test_of_two_moves_at_once_no_name_is_lost(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/one")

    answers = await asyncio.gather(
        move(client, ada, "ada/one", "ada/two"), move(client, ada, "ada/one", "ada/three")
    )

    assert {answer.status_code for answer in answers} == {200, 404}
    response = await client.get("/api/models/ada/one", follow_redirects=True)
    assert response.status_code == 200
