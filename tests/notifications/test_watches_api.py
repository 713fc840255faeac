"""What a user watches: users, organizations and repositories."""

from typing import Any

import httpx2
import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, OrganizationPlan, Role
from hublet.core.database import Database
from hublet.notifications import watches
from hublet.tokens.records import TokenRole
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo, a_resource_group, disable
from service_accounts import create as create_service_account
from workers import drain

PATH = "/api/settings/watch"
NOBODY = "0123456789abcdef01234567"


async def watched(client: httpx2.AsyncClient, headers: Headers) -> list[dict[str, Any]]:
    response = await client.get(PATH, headers=headers)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["watched"]
    return found


async def change(
    client: httpx2.AsyncClient, headers: Headers, **body: list[tuple[str, str]]
) -> httpx2.Response:
    """Ask for a change; items are written as type and id."""
    lists = {
        name: [{"type": type_, "id": id_} for type_, id_ in items] for name, items in body.items()
    }
    return await client.patch(PATH, headers=headers, json=lists)


async def test_users_organizations_and_repositories_are_watched(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    user, lab = await a_user(database, "ada"), await an_organization(database, "lab")
    repo_id = await a_repo(client, ada, "ada/engine", type="dataset")

    response = await change(
        client, bob, add=[("user", user.id), ("org", lab.id), ("repo", repo_id)]
    )

    assert (response.status_code, response.json()) == (
        200,
        {
            "watched": [
                {"id": user.id, "type": "user", "name": "ada"},
                {"id": lab.id, "type": "org", "name": "lab"},
                {"id": repo_id, "type": "repo", "name": "ada/engine", "repoType": "dataset"},
            ]
        },
    )
    assert await watched(client, bob) == response.json()["watched"]
    assert await watched(client, ada) == []


async def test_a_change_keeps_what_it_does_not_name(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    one, two, three = [(await a_user(database, name)).id for name in ("grace", "alan", "barbara")]
    await change(client, ada, add=[("user", one), ("user", two)])

    response = await change(client, ada, delete=[("user", one)], add=[("user", three)])

    assert [item["id"] for item in response.json()["watched"]] == [two, three]
    assert (await client.patch(PATH, headers=ada, json={})).json() == response.json()


async def test_watching_twice_is_watching_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    one, two = [(await a_user(database, name)).id for name in ("grace", "alan")]
    await change(client, ada, add=[("user", one), ("user", two)])

    response = await change(client, ada, add=[("user", one), ("user", one)])

    assert [item["id"] for item in response.json()["watched"]] == [one, two]


async def test_what_is_deleted_and_added_is_deleted_first(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    one, two = [(await a_user(database, name)).id for name in ("grace", "alan")]
    await change(client, ada, add=[("user", one)])
    await change(client, ada, add=[("user", two)])

    response = await change(client, ada, delete=[("user", one)], add=[("user", one)])

    assert [item["id"] for item in response.json()["watched"]] == [two, one]


async def test_deleting_what_is_not_watched_is_no_mistake(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    grace = (await a_user(database, "grace")).id
    await change(client, ada, add=[("user", grace)])

    response = await change(
        client, ada, delete=[("user", NOBODY), ("repo", NOBODY), ("org", grace)]
    )

    assert response.status_code == 200
    assert [item["id"] for item in response.json()["watched"]] == [grace]


async def test_one_item_that_does_not_exist_refuses_the_whole_change(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    grace, alan = [(await a_user(database, name)).id for name in ("grace", "alan")]
    await change(client, ada, add=[("user", grace)])

    response = await change(
        client, ada, delete=[("user", grace)], add=[("user", alan), ("user", NOBODY)]
    )

    assert (response.status_code, response.json()) == (
        404,
        {
            "error": f"add[1]: there is no user with the id {NOBODY}, or you cannot see it.",
        },
    )
    assert [item["id"] for item in await watched(client, ada)] == [grace]


@pytest.mark.parametrize(
    ("kind", "called"),
    [
        (kind, called)
        for kind in ("user", "org", "repo")
        for called in ("user", "org", "repo")
        if kind != called
    ],
)
async def test_the_type_must_be_that_of_the_id(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str, called: str
) -> None:
    ids = {
        "user": (await a_user(database, "grace")).id,
        "org": (await an_organization(database, "lab")).id,
        "repo": await a_repo(client, ada, "ada/engine"),
    }

    response = await change(client, ada, add=[(called, ids[kind])])

    assert (response.status_code, response.json()["error"]) == (
        404,
        f"add[0]: there is no {called} with the id {ids[kind]}, or you cannot see it.",
    )


async def test_a_thread_cannot_be_watched(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    response = await change(client, ada, add=[("thread", NOBODY)])

    assert response.status_code == 400
    assert "add[0].type" in response.json()["error"]


async def test_a_disabled_user_can_neither_be_watched_nor_seen(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    grace = (await a_user(database, "grace")).id
    await change(client, ada, add=[("user", grace)])

    await disable(database, "grace")

    assert await watched(client, ada) == []
    assert (await change(client, ada, add=[("user", grace)])).status_code == 404


@pytest.mark.parametrize(
    ("who", "may"),
    [
        pytest.param("root", True, id="an administrator of the organization"),
        pytest.param("grace", True, id="a member of the resource group"),
        pytest.param("alan", False, id="a member who is not in the group"),
        pytest.param("mallory", False, id="a stranger"),
    ],
)
async def test_a_private_repository_is_watched_by_those_who_see_it(
    client: httpx2.AsyncClient, database: Database, who: str, *, may: bool
) -> None:
    members = {"root": Role.admin, "grace": Role.read, "alan": Role.write}
    lab = await an_organization(database, "lab", plan=OrganizationPlan.team, members=members)
    group = await a_resource_group(database, lab, members={"grace": Role.read})
    repo_id = await a_repo(
        client,
        await sign_in(database, "root"),
        "lab/engine",
        private=True,
        resourceGroupId=group.id,
    )

    response = await change(client, await sign_in(database, who), add=[("repo", repo_id)])

    assert response.status_code == (200 if may else 404)


async def test_a_private_repository_is_watched_by_its_owner_and_by_members_alone(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "lab", members={"ada": Role.admin, "grace": Role.read})
    own = await a_repo(client, ada, "ada/engine", private=True)
    labs = await a_repo(client, ada, "lab/engine", private=True)
    grace, mallory = await sign_in(database, "grace"), await sign_in(database, "mallory")

    answers = {
        name: [
            (await change(client, headers, add=[("repo", repo)])).status_code
            for repo in (own, labs)
        ]
        for name, headers in (("ada", ada), ("grace", grace), ("mallory", mallory))
    }

    assert answers == {"ada": [200, 200], "grace": [404, 200], "mallory": [404, 404]}


async def test_what_is_out_of_sight_is_not_listed_until_it_is_seen_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    repo_id = await a_repo(client, ada, "ada/engine")
    await change(client, bob, add=[("repo", repo_id)])
    before = await watched(client, bob)

    await client.put("/api/models/ada/engine/settings", headers=ada, json={"private": True})
    assert await watched(client, bob) == []
    await client.put("/api/models/ada/engine/settings", headers=ada, json={"private": False})

    assert await watched(client, bob) == before


async def test_a_moved_repository_is_watched_under_its_new_name(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    repo_id = await a_repo(client, ada, "ada/engine")
    await change(client, bob, add=[("repo", repo_id)])

    await client.post(
        "/api/repos/move",
        headers=ada,
        json={"fromRepo": "ada/engine", "toRepo": "ada/mill", "type": "model"},
    )

    assert [item["name"] for item in await watched(client, bob)] == ["ada/mill"]


async def test_a_deleted_repository_is_watched_by_nobody(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    gone, kept = [await a_repo(client, ada, f"ada/{name}") for name in ("engine", "mill")]
    await change(client, bob, add=[("repo", gone), ("repo", kept)])

    await client.request("DELETE", "/api/repos/delete", headers=ada, json={"name": "ada/engine"})
    await drain(database)

    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT target_id FROM watches")
    assert [row["target_id"] for row in rows] == [kept]


async def test_members_watch_their_organization_from_the_first_to_the_last_day(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    lab = await an_organization(database, "lab", members={"ada": Role.read, "bob": Role.admin})
    bob = await sign_in(database, "bob")
    await drain(database)
    entry = {"id": lab.id, "type": "org", "name": "lab"}
    assert (await watched(client, ada), await watched(client, bob)) == ([entry], [entry])

    user = await a_user(database, "ada")
    async with database.transaction() as conn:
        await organizations.remove_member(conn, OPERATOR, lab, user)
    await drain(database)

    assert (await watched(client, ada), await watched(client, bob)) == ([], [entry])


async def test_another_role_does_not_bring_back_what_a_member_stopped_watching(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    lab = await an_organization(database, "lab", members={"ada": Role.read})
    user = await a_user(database, "ada")
    await drain(database)
    await change(client, ada, delete=[("org", lab.id)])

    async with database.transaction() as conn:
        await organizations.set_member(conn, OPERATOR, lab, user, Role.write)
    await drain(database)

    assert await watched(client, ada) == []


async def test_a_service_account_does_not_watch_its_organization(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(
        database, "engines", plan=OrganizationPlan.enterprise, members={"ada": Role.admin}
    )

    await create_service_account(client, ada)
    await drain(database)

    user = await a_user(database, "ada")
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT user_id FROM watches")
    assert [row["user_id"] for row in rows] == [user.id]


async def test_nobody_watches_more_than_there_may_be(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watches, "MOST_WATCHED", 2)
    one, two, three = [(await a_user(database, name)).id for name in ("grace", "alan", "barbara")]
    assert (await change(client, ada, add=[("user", one), ("user", two)])).status_code == 200

    refused = await change(client, ada, add=[("user", three)])

    assert (refused.status_code, refused.json()) == (
        409,
        {"error": "add: nobody can watch more than 2; delete some first."},
    )
    assert [item["id"] for item in await watched(client, ada)] == [one, two]
    replaced = await change(client, ada, delete=[("user", one)], add=[("user", three)])
    assert [item["id"] for item in replaced.json()["watched"]] == [two, three]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({"add": [{"id": "ada", "type": "user"}]}, "add[0].id", id="a name"),
        pytest.param({"add": [{"id": "A" * 24, "type": "user"}]}, "add[0].id", id="capitals"),
        pytest.param({"add": [{"id": NOBODY, "type": "model"}]}, "add[0].type", id="no such type"),
        pytest.param({"delete": [{"id": NOBODY}]}, "delete[0].type", id="no type"),
        pytest.param({"delete": [{"type": "user"}]}, "delete[0].id", id="no id"),
        pytest.param({"add": NOBODY}, "add", id="no list"),
        pytest.param({"remove": []}, "remove", id="an unknown field"),
        pytest.param(
            {"add": [{"id": NOBODY, "type": "user", "name": "ada"}]}, "add[0].name", id="one more"
        ),
        pytest.param({"add": [{"id": NOBODY, "type": "user"}] * 1001}, "add", id="too many"),
    ],
)
async def test_bad_input_names_the_field(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, Any], field: str
) -> None:
    response = await client.patch(PATH, headers=ada, json=body)

    assert response.status_code == 400
    assert response.json()["error"].startswith(field)


async def test_a_thousand_items_at_once_are_not_too_many(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    grace = (await a_user(database, "grace")).id

    response = await change(
        client, ada, delete=[("user", NOBODY)] * 1000, add=[("user", grace)] * 1000
    )

    assert [item["id"] for item in response.json()["watched"]] == [grace]


async def test_only_a_full_token_reaches_the_list(
    client: httpx2.AsyncClient, database: Database
) -> None:
    reading = await sign_in(database, "ada", role=TokenRole.read)
    scoped = await sign_in(database, "ada", scopes=["read-repos", "write-discussions"])
    answers = [
        (await client.request(method, PATH, headers=headers, json=None if method == "GET" else {}))
        for headers in ({}, scoped, reading)
        for method in ("GET", "PATCH")
    ]

    assert [answer.status_code for answer in answers] == [401, 401, 403, 403, 200, 403]
