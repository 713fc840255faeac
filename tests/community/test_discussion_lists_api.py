"""Lists of discussions: pages, filters and their order."""

from typing import Any

import httpx2
import pytest

from community.discussions import PATH, a_discussion, a_pull_request
from community.public_threads import a_comment, author_card
from hublet.community.discussions import service
from hublet.core.database import Database
from people import Headers, a_user, sign_in
from repositories import a_repo


@pytest.fixture(autouse=True)
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


@pytest.fixture
async def bob(database: Database) -> Headers:
    return await sign_in(database, "bob")


async def page(client: httpx2.AsyncClient, **asked: Any) -> dict[str, Any]:
    response = await client.get(PATH, params=asked)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def titles(client: httpx2.AsyncClient, **asked: Any) -> list[str]:
    return [each["title"] for each in (await page(client, **asked))["discussions"]]


async def close(client: httpx2.AsyncClient, headers: Headers, address: str) -> None:
    response = await client.post(f"{address}/status", headers=headers, json={"status": "closed"})
    assert response.status_code == 200


async def test_the_newest_come_first_and_pinned_ones_before_them(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    first, _ = await a_discussion(client, ada, title="First"), await a_pull_request(client, ada)
    await a_discussion(client, ada, title="Third")
    await client.post(f"{first}/pin", headers=ada, json={"pinned": True})

    found = await page(client)

    top = found["discussions"][0]
    assert [each["num"] for each in found["discussions"]] == [1, 3, 2]
    assert top == {
        "id": top["id"],
        "num": 1,
        "title": "First",
        "status": "open",
        "createdAt": top["createdAt"],
        "updatedAt": top["updatedAt"],
        "isPullRequest": False,
        "pinned": True,
        "numComments": 1,
        "author": author_card(await a_user(database, "ada")),
        "repo": {"name": "ada/engine", "type": "model"},
        "topReactions": [],
        "numReactionUsers": 0,
    }
    assert {name: value for name, value in found.items() if name != "discussions"} == {
        "count": 3,
        "start": 0,
        "numClosedDiscussions": 0,
    }


async def test_pages_follow_each_other(
    client: httpx2.AsyncClient, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "PAGE_SIZE", 2)
    for title in ("One", "Two", "Three"):
        await a_discussion(client, ada, title=title)

    pages = [await page(client, p=number) for number in range(3)]

    assert [[each["title"] for each in part["discussions"]] for part in pages] == [
        ["Three", "Two"],
        ["One"],
        [],
    ]
    assert [(part["start"], part["count"]) for part in pages] == [(0, 3), (2, 3), (4, 3)]


@pytest.mark.parametrize(
    ("asked", "expected", "count", "closed"),
    [
        pytest.param({}, ["Bob asks", "Merge 100%", "Done", "Open"], 4, 1, id="all"),
        pytest.param({"type": "all", "status": "all"}, ["Bob asks", "Merge 100%", "Done", "Open"],
                     4, 1, id="all by name"),
        pytest.param({"type": "pull_request"}, ["Merge 100%"], 1, 0, id="pull requests"),
        pytest.param({"type": "discussion"}, ["Bob asks", "Done", "Open"], 3, 1, id="discussions"),
        pytest.param({"status": "open"}, ["Bob asks", "Merge 100%", "Open"], 3, 1,
                     id="open ones, and drafts"),
        pytest.param({"status": "closed"}, ["Done"], 1, 1, id="closed ones"),
        pytest.param({"author": "BOB"}, ["Bob asks"], 1, 0, id="those of an author"),
        pytest.param({"author": "nobody"}, [], 0, 0, id="those of nobody"),
        pytest.param({"search": "O"}, ["Bob asks", "Done", "Open"], 3, 1, id="part of the title"),
        pytest.param({"search": "100%"}, ["Merge 100%"], 1, 0, id="a character of patterns"),
        pytest.param({"search": "_"}, [], 0, 0, id="another character of patterns"),
    ],
)  # fmt: skip
async def test_a_list_is_filtered(
    client: httpx2.AsyncClient,
    ada: Headers,
    bob: Headers,
    asked: dict[str, str],
    expected: list[str],
    *,
    count: int,
    closed: int,
) -> None:
    await a_discussion(client, ada, title="Open")
    await close(client, ada, await a_discussion(client, ada, title="Done"))
    await a_pull_request(client, ada, title="Merge 100%")
    await a_discussion(client, bob, title="Bob asks")

    found = await page(client, **asked)

    assert [each["title"] for each in found["discussions"]] == expected
    assert (found["count"], found["numClosedDiscussions"]) == (count, closed)


async def test_merged_ones_are_among_the_closed(client: httpx2.AsyncClient, ada: Headers) -> None:
    address = await a_pull_request(client, ada, title="Merge me")
    await client.post(f"{address}/merge", headers=ada)

    assert await titles(client, status="closed") == ["Merge me"]
    assert await titles(client, status="open") == []


async def test_a_list_has_other_orders(client: httpx2.AsyncClient, ada: Headers) -> None:
    for title in ("One", "Two", "Three"):
        await a_discussion(client, ada, title=title)
    await a_comment(client, ada, f"{PATH}/2")
    await a_comment(client, ada, f"{PATH}/1")

    assert await titles(client, sort="recently-created") == ["Three", "Two", "One"]
    assert await titles(client, sort="trending") == ["One", "Two", "Three"]
    assert await titles(client, sort="reactions") == ["Three", "Two", "One"]


@pytest.mark.parametrize(
    "asked", [{"p": -1}, {"p": "x"}, {"type": "issue"}, {"status": "merged"}, {"sort": "best"}]
)
async def test_a_list_that_cannot_be_is_refused(
    client: httpx2.AsyncClient, asked: dict[str, Any]
) -> None:
    assert (await client.get(PATH, params=asked)).status_code == 400


async def test_other_repositories_have_lists_of_their_own(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/loom")
    await a_discussion(client, ada, "/api/models/ada/loom/discussions")

    assert await page(client) == {
        "discussions": [],
        "count": 0,
        "start": 0,
        "numClosedDiscussions": 0,
    }
