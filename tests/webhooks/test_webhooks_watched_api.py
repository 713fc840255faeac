"""What a webhook may watch, and under which name it is shown."""

from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core.database import Database
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo, disable
from webhooks.webhook_calls import PATH, URL, create, refusal, show, update

REPO_TYPES = ["dataset", "model", "space", "bucket", "kernel", "container"]


def item(type: str, name: str) -> dict[str, str]:  # noqa: A002 - the interface's word
    return {"type": type, "name": name}


def names(webhook: Any) -> list[str]:
    return [f"{each['type']}:{each['name']}" for each in webhook["watched"]]


async def targets_of(database: Database, webhook_id: str) -> list[str]:
    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT target FROM webhook_watched WHERE webhook_id = $1 ORDER BY position", webhook_id
        )
    return [row["target"] for row in rows]


@pytest.mark.parametrize("kind", REPO_TYPES)
async def test_a_repository_of_each_type_is_watched_by_its_id(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    if kind in {"bucket", "container"}:
        created = await client.post(f"/api/{kind}s/ada/thing", headers=ada, json={"private": True})
        repo_id = created.json()["id"]
    else:
        repo_id = await a_repo(client, ada, "ada/thing", type=kind, private=True)

    webhook = await create(client, ada, watched=[item(kind, "ada/thing")])

    picture = f"http://hub.test/avatars/{(await a_user(database, 'ada')).id}"
    assert webhook["watched"] == [{"name": "ada/thing", "type": kind, "avatarUrl": picture}]
    assert await targets_of(database, webhook["id"]) == [repo_id]


async def test_users_and_organizations_are_watched_by_their_ids(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await a_user(database, "Bob")
    engines = await an_organization(database, "Engines")

    webhook = await create(client, ada, watched=[item("user", "bob"), item("org", "ENGINES")])

    assert webhook["watched"] == [
        {"name": "Bob", "type": "user", "avatarUrl": f"http://hub.test/avatars/{bob.id}"},
        {"name": "Engines", "type": "org", "avatarUrl": f"http://hub.test/avatars/{engines.id}"},
    ]
    assert await targets_of(database, webhook["id"]) == [bob.id, engines.id]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param("user", "nobody", id="no user"),
        pytest.param("user", "engines", id="an organization is no user"),
        pytest.param("org", "ada", id="a user is no organization"),
        pytest.param("user", "eve", id="a user who is disabled"),
        pytest.param("model", "ada/nothing", id="no repository"),
        pytest.param("dataset", "ada/engine", id="a repository of another type"),
        pytest.param("model", "engine", id="a name without an owner"),
        pytest.param("model", "ada/engine/x", id="a name of three parts"),
        pytest.param("model", "ada/secret", id="a repository that is private to somebody else"),
    ],
)
async def test_what_is_not_there_or_out_of_sight_cannot_be_watched(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str, name: str
) -> None:
    await an_organization(database, "engines")
    await a_repo(client, ada, "ada/engine")
    await a_repo(client, ada, "ada/secret", private=True)
    await a_user(database, "eve")
    await disable(database, "eve")
    bob = await sign_in(database, "bob")
    body = {"url": URL, "domains": ["repo"], "watched": [item("user", "bob"), item(kind, name)]}

    assert await refusal(client, bob, body) == (
        404,
        f"watched[1]: there is no {kind} {name}, or you cannot see it.",
    )
    assert (await client.get(PATH, headers=bob)).json() == []


async def test_a_token_that_reads_no_repositories_cannot_watch_private_ones(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/secret", private=True)
    watched = [item("model", "ada/secret")]
    narrow = await sign_in(database, "ada", scopes=["webhooks"])
    wide = await sign_in(database, "ada", scopes=["webhooks", "read-repos"])

    status, _ = await refusal(client, narrow, {"url": URL, "domains": ["repo"], "watched": watched})
    webhook = await create(client, wide, watched=watched)

    assert (status, names(webhook)) == (404, ["model:ada/secret"])


async def test_a_member_watches_what_the_organization_keeps_private(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin, "bob": Role.read})
    await a_repo(client, ada, "engines/secret", private=True)
    bob = await sign_in(database, "bob")

    webhook = await create(client, bob, watched=[item("model", "engines/secret")])

    assert names(webhook) == ["model:engines/secret"]


async def test_what_is_named_twice_is_watched_once(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/Engine")
    asked = [
        item("user", "ada"),
        item("model", "ada/engine"),
        item("user", "ADA"),
        item("model", "Ada/ENGINE"),
    ]

    webhook = await create(client, ada, watched=asked)

    assert names(webhook) == ["user:ada", "model:ada/Engine"]


async def test_a_renamed_repository_is_shown_under_its_new_name(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    webhook = await create(client, ada, watched=[item("model", "ada/engine")])
    move = {"fromRepo": "ada/engine", "toRepo": "ada/motor", "type": "model"}
    assert (await client.post("/api/repos/move", headers=ada, json=move)).status_code == 200

    shown = await show(client, ada, webhook["id"])
    both_names = [item("model", "ada/engine"), item("model", "ada/motor")]
    by_old_name = await update(client, ada, webhook["id"], watched=both_names)

    assert names(shown) == names(by_old_name) == ["model:ada/motor"]
    assert (await client.get(PATH, headers=ada)).json() == [shown]
    assert await targets_of(database, webhook["id"]) == [repo_id]


async def delete_repo(client: httpx2.AsyncClient, headers: Headers, full_name: str) -> None:
    response = await client.request(
        "DELETE", "/api/repos/delete", headers=headers, json={"name": full_name}
    )
    assert response.status_code == 200, response.text


async def test_a_deleted_repository_stays_under_its_last_name(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    webhook = await create(client, ada, watched=[item("model", "ada/engine"), item("user", "ada")])
    await delete_repo(client, ada, "ada/engine")

    shown = await show(client, ada, webhook["id"])

    assert shown["watched"] == [{"name": "ada/engine", "type": "model"}, webhook["watched"][1]]


async def test_what_is_watched_already_may_stay_when_it_is_gone(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    webhook = await create(client, ada, watched=[item("model", "ada/engine")])
    await delete_repo(client, ada, "ada/engine")
    [target] = await targets_of(database, webhook["id"])

    after = await update(
        client, ada, webhook["id"], watched=[item("user", "ada"), item("model", "Ada/engine")]
    )

    assert names(after) == ["user:ada", "model:ada/engine"]
    assert (await targets_of(database, webhook["id"]))[1] == target


async def test_nobody_learns_the_new_name_of_what_they_see_no_more(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    bob = await sign_in(database, "bob")
    webhook = await create(client, bob, watched=[item("model", "ada/engine")])
    move = {"fromRepo": "ada/engine", "toRepo": "ada/time-machine", "type": "model"}
    await client.post("/api/repos/move", headers=ada, json=move)
    hidden = await client.put(
        "/api/models/ada/time-machine/settings", headers=ada, json={"private": True}
    )

    shown = await show(client, bob, webhook["id"])

    assert hidden.status_code == 200
    assert shown["watched"] == [{"name": "ada/engine", "type": "model"}]


async def test_a_member_sees_the_new_name_of_what_is_private(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin, "bob": Role.read})
    await a_repo(client, ada, "engines/secret", private=True)
    bob = await sign_in(database, "bob")
    watched = [item("model", "engines/secret")]
    created = [await create(client, each, watched=watched) for each in (ada, bob)]
    move = {"fromRepo": "engines/secret", "toRepo": "engines/motor", "type": "model"}
    await client.post("/api/repos/move", headers=ada, json=move)

    shown = [
        await show(client, each, webhook["id"])
        for each, webhook in zip((ada, bob), created, strict=True)
    ]

    assert [names(each) for each in shown] == [["model:engines/motor"]] * 2
