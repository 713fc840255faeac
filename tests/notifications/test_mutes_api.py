"""What a user muted: repositories and threads."""

from typing import Any

import httpx2
import pytest

from community.discussions import a_discussion, get_discussion
from community.public_threads import a_thread, thread_id
from hublet.core.database import Database
from hublet.notifications import watches
from hublet.tokens.records import TokenRole
from people import Headers, a_user, sign_in
from repositories import a_repo

PATH = "/api/settings/mute"
NOTHING = "0123456789abcdef01234567"


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


async def muted(client: httpx2.AsyncClient, headers: Headers) -> list[dict[str, Any]]:
    response = await client.get(PATH, headers=headers)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["muted"]
    return found


async def change(
    client: httpx2.AsyncClient, headers: Headers, **body: list[tuple[str, str]]
) -> httpx2.Response:
    """Ask for a change; items are written as type and id."""
    lists = {
        name: [{"type": type_, "id": id_} for type_, id_ in items] for name, items in body.items()
    }
    return await client.patch(PATH, headers=headers, json=lists)


async def test_repositories_and_threads_are_muted(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    bob = await sign_in(database, "bob")
    discussion = (await get_discussion(client, await a_discussion(client, ada)))["id"]
    post = await thread_id(client, await a_thread(client, ada, "post"))

    response = await change(
        client, bob, add=[("repo", repo_id), ("thread", discussion), ("thread", post)]
    )

    assert (response.status_code, response.json()) == (
        200,
        {
            "muted": [
                {"id": repo_id, "type": "repo", "name": "ada/engine", "repoType": "model"},
                {
                    "id": discussion,
                    "type": "thread",
                    "name": "Does it run?",
                    "kind": "discussion",
                },
                {"id": post, "type": "thread", "name": "A post to talk about", "kind": "post"},
            ]
        },
    )
    assert await muted(client, bob) == response.json()["muted"]
    assert await muted(client, ada) == []


async def test_what_a_thread_was_muted_with_is_one_list(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    address = await a_thread(client, ada, "paper")
    paper = await thread_id(client, address)

    await client.post(f"{address}/mute", headers=ada)
    assert [item["id"] for item in await muted(client, ada)] == [paper]
    await change(client, ada, delete=[("thread", paper)])

    assert await muted(client, ada) == []
    await change(client, ada, add=[("thread", paper)])
    await client.delete(f"{address}/mute", headers=ada)
    assert await muted(client, ada) == []


async def test_a_change_keeps_what_it_does_not_name(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    other = await a_repo(client, ada, "ada/mill")
    post = await thread_id(client, await a_thread(client, ada, "post"))
    await change(client, ada, add=[("repo", repo_id), ("thread", post)])

    response = await change(client, ada, delete=[("repo", repo_id)], add=[("repo", other)])

    assert [item["id"] for item in response.json()["muted"]] == [post, other]
    assert (await client.patch(PATH, headers=ada, json={})).json() == response.json()


async def test_what_is_deleted_and_added_is_deleted_first(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    post = await thread_id(client, await a_thread(client, ada, "post"))
    await change(client, ada, add=[("repo", repo_id), ("thread", post)])
    both = [("repo", repo_id), ("thread", post)]

    response = await change(client, ada, delete=both, add=both + both)

    assert {item["id"] for item in response.json()["muted"]} == {repo_id, post}


async def test_deleting_what_is_not_muted_is_no_mistake(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    await change(client, ada, add=[("repo", repo_id)])

    response = await change(
        client, ada, delete=[("repo", NOTHING), ("thread", NOTHING), ("thread", repo_id)]
    )

    assert [item["id"] for item in response.json()["muted"]] == [repo_id]


@pytest.mark.parametrize("type_", ["repo", "thread"])
async def test_one_item_that_does_not_exist_refuses_the_whole_change(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str, type_: str
) -> None:
    post = await thread_id(client, await a_thread(client, ada, "post"))
    await change(client, ada, add=[("thread", post)])

    response = await change(
        client, ada, delete=[("thread", post)], add=[("repo", repo_id), (type_, NOTHING)]
    )

    assert (response.status_code, response.json()) == (
        404,
        {"error": f"add[1]: there is no {type_} with the id {NOTHING}, or you cannot see it."},
    )
    assert [item["id"] for item in await muted(client, ada)] == [post]


async def test_the_type_must_be_that_of_the_id(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    post = await thread_id(client, await a_thread(client, ada, "post"))
    user = await a_user(database, "ada")

    answers = [
        await change(client, ada, add=[item])
        for item in (("thread", repo_id), ("repo", post), ("repo", user.id), ("user", user.id))
    ]

    assert [answer.status_code for answer in answers] == [404, 404, 404, 400]
    assert await muted(client, ada) == []


async def test_what_is_out_of_sight_is_neither_listed_nor_muted(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    bob = await sign_in(database, "bob")
    discussion = (await get_discussion(client, await a_discussion(client, ada)))["id"]
    both = [("repo", repo_id), ("thread", discussion)]
    await change(client, bob, add=both)
    before = await muted(client, bob)
    settings = "/api/models/ada/engine/settings"

    await client.put(settings, headers=ada, json={"private": True})
    hidden = await muted(client, bob)
    answers = [(await change(client, bob, add=[item])).status_code for item in both]
    await client.put(settings, headers=ada, json={"private": False})

    assert (hidden, answers) == ([], [404, 404])
    assert await muted(client, bob) == before
    assert len(before) == 2


async def test_what_is_deleted_leaves_the_list(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    address = await a_thread(client, ada, "post")
    post = await thread_id(client, address)
    await change(client, ada, add=[("repo", repo_id), ("thread", post)])

    await client.delete(address, headers=ada)
    await client.request("DELETE", "/api/repos/delete", headers=ada, json={"name": "ada/engine"})

    assert await muted(client, ada) == []


async def test_nobody_mutes_more_than_there_may_be(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "MOST_MUTED", 1)
    post = await thread_id(client, await a_thread(client, ada, "post"))
    await change(client, ada, add=[("repo", repo_id)])

    refused = await change(client, ada, add=[("thread", post)])

    assert (refused.status_code, refused.json()) == (
        409,
        {"error": "add: nobody can mute more than 1; delete some first."},
    )
    replaced = await change(client, ada, delete=[("repo", repo_id)], add=[("thread", post)])
    assert [item["id"] for item in replaced.json()["muted"]] == [post]


async def test_only_a_full_token_reaches_the_list(
    client: httpx2.AsyncClient, database: Database
) -> None:
    reading = await sign_in(database, "ada", role=TokenRole.read)
    scoped = await sign_in(database, "ada", scopes=["read-repos", "write-discussions"])
    answers = [
        await client.request(method, PATH, headers=headers, json=None if method == "GET" else {})
        for headers in ({}, scoped, reading)
        for method in ("GET", "PATCH")
    ]

    assert [answer.status_code for answer in answers] == [401, 401, 403, 403, 200, 403]
