"""Trending lists, and lists of spaces: what is public and liked, and what is found by words."""

from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from hublet.repos.browse import list_index
from people import Headers, sign_in
from repositories import a_push, a_repo
from search.quick_searches import in_step, quick_search

TRENDING = "/api/trending"
SPACES = "/api/spaces/semantic-search"


async def trending(
    client: httpx2.AsyncClient, headers: Headers | None = None, **query: Any
) -> list[tuple[str, str]]:
    response = await client.get(TRENDING, params=query, headers=headers or {})
    assert response.status_code == 200, response.text
    found = response.json()["recentlyTrending"]
    return [(each["repoType"], each["repoData"]["id"]) for each in found]


async def spaces(
    client: httpx2.AsyncClient, q: str, headers: Headers | None = None, **query: Any
) -> list[str]:
    response = await client.get(SPACES, params={"q": q, **query}, headers=headers or {})
    assert response.status_code == 200, response.text
    return [each["id"] for each in response.json()]


async def test_what_was_liked_of_late_comes_first(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    for kind, name in (("model", "engine"), ("dataset", "words"), ("space", "demo")):
        await a_repo(client, ada, f"ada/{name}", type=kind)
    await a_repo(client, ada, "ada/secret", visibility="private")
    for headers in (ada, bob):
        await client.post("/api/datasets/ada/words/like", headers=headers)
        await client.post("/api/models/ada/secret/like", headers=headers)
    await client.post("/api/spaces/ada/demo/like", headers=bob)
    await list_index.update_scores(database)
    await in_step(database)

    assert await trending(client, ada) == [
        ("dataset", "ada/words"),
        ("space", "ada/demo"),
        ("model", "ada/engine"),
    ]
    assert await trending(client, type="model") == [("model", "ada/engine")]
    assert await trending(client, limit=1) == [("dataset", "ada/words")]
    found = await quick_search(client, q="words")
    assert found["datasets"][0]["trendingWeight"] > 0


async def test_each_type_has_the_fields_of_the_public_service(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    for kind, name in (("model", "engine"), ("dataset", "words"), ("space", "demo")):
        await a_repo(client, ada, f"ada/{name}", type=kind)
    await client.post("/api/models/ada/engine/like", headers=ada)

    found = (await client.get(TRENDING, headers=ada)).json()["recentlyTrending"]

    data = {each["repoType"]: each["repoData"] for each in found}
    shared = {"author", "id", "isLikedByUser", "likes", "private", "repoType", "lastModified"}
    assert all(shared <= each.keys() for each in data.values())
    assert data["model"]["isLikedByUser"] is True
    assert data["model"]["availableInferenceProviders"] == []
    assert (data["dataset"]["downloads"], data["dataset"]["gated"]) == (0, False)
    needed = (
        "colorFrom colorTo createdAt emoji pinned title runtime disabled tags featured visibility"
    )
    assert set(needed.split()) <= data["space"].keys()
    assert "emoji" not in data["model"]


@pytest.mark.parametrize("query", ["limit=0", "limit=21", "type=bucket"])
async def test_a_bad_question_is_refused(client: httpx2.AsyncClient, query: str) -> None:
    response = await client.get(f"{TRENDING}?{query}")

    assert response.status_code == 400
    assert query.partition("=")[0] in response.json()["error"]


async def test_spaces_are_found_by_name_tag_card_and_program(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    for name, sdk in {"painter": "gradio", "sculptor": "docker"}.items():
        space = await a_repo(client, ada, f"ada/{name}", type="space", sdk=sdk)
        files = {"README.md": b"makes art", "app.py": f"# {name}_secret_sauce".encode()}
        await a_push(database, space, files, tags=["art", name])
    await in_step(database)

    assert await spaces(client, "painter") == ["ada/painter"]
    assert set(await spaces(client, "makes art")) == {"ada/painter", "ada/sculptor"}
    assert await spaces(client, "sauce sculptor") == ["ada/sculptor"]
    assert await spaces(client, "art", sdk="gradio") == ["ada/painter"]
    assert await spaces(client, "art", filter=["art", "Sculptor"]) == ["ada/sculptor"]
    assert set(await spaces(client, "")) == {"ada/painter", "ada/sculptor"}


async def test_private_spaces_are_found_by_whom_they_are_for(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/painter", type="space", sdk="gradio", visibility="private")
    await in_step(database)
    narrow = await sign_in(database, "ada", scopes=["profile"])
    stranger = await sign_in(database, "stranger")

    found = [await spaces(client, "painter", each) for each in ({}, stranger, narrow, ada)]

    assert found == [[], [], [], ["ada/painter"]]


async def test_spaces_that_this_hub_features_hosts_and_offers(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/demo", type="space", sdk="gradio")
    await a_repo(client, ada, "ada/secret", type="space", sdk="gradio", visibility="private")

    featured = (await client.get("/api/spaces/featured", headers=ada)).json()

    assert [each["id"] for each in featured] == ["ada/demo"]
    assert (await client.get("/api/spaces/hardware")).json() == []
    assert (await client.get("/api/spaces/templates")).json() == {"templates": []}
