"""Lists of collections: filters, orders, pages and limits."""

from typing import Any

import httpx2
import pytest

from account_responses import pages_of
from community.collection_scenes import PATH, a_collection, an_item, titles_in
from hublet.core.database import Database
from people import Headers, sign_in
from repositories import a_repo


async def test_lists_are_filtered_by_owner_item_and_text(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await a_repo(client, ada, "ada/engine")
    await a_repo(client, ada, "ada/cards", type="dataset")
    wheels = await a_collection(client, ada, description="All 100% that turns")
    await a_collection(client, ada, "Cogs", item={"type": "model", "id": "ada/engine"})
    await a_collection(client, bob, "Bolts", namespace="bob")
    await an_item(client, ada, wheels["slug"], "dataset", "ada/cards")

    assert set(await titles_in(client)) == {"Wheels", "Cogs", "Bolts"}
    assert set(await titles_in(client, owner="ADA")) == {"Wheels", "Cogs"}
    assert set(await titles_in(client, owner=["ada", "bob"])) == {"Wheels", "Cogs", "Bolts"}
    assert await titles_in(client, owner="nobody") == []
    assert await titles_in(client, item="models/ada/engine") == ["Cogs"]
    both = ["models/ada/engine", "datasets/ada/cards"]
    assert set(await titles_in(client, item=both)) == {"Wheels", "Cogs"}
    assert await titles_in(client, item="papers/2401.12345") == []
    assert await titles_in(client, q="ALL 100%") == ["Wheels"]
    assert await titles_in(client, q="_") == []


async def test_lists_are_ordered_by_change_votes_and_trend(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    slugs = [(await a_collection(client, ada, title))["slug"] for title in "ABC"]
    for name in ("ada", "bob"):
        voter = await sign_in(database, name)
        await client.post(f"{PATH}/{slugs[0]}/upvote", headers=voter)
    await client.post(f"{PATH}/{slugs[2]}/upvote", headers=ada)
    await client.patch(f"{PATH}/{slugs[1]}", headers=ada, json={"theme": "blue"})

    assert (await titles_in(client, sort="lastModified"))[0] == "B"
    assert await titles_in(client, sort="upvotes") == ["A", "C", "B"]
    assert await titles_in(client) == ["A", "C", "B"]


@pytest.mark.parametrize("sort", ["lastModified", "upvotes", "trending"])
async def test_pages_follow_one_another_with_private_ones_among_them(
    client: httpx2.AsyncClient, ada: Headers, sort: str
) -> None:
    for number in range(7):
        await a_collection(client, ada, f"Number {number}", private=number % 2 == 0)

    pages = await pages_of(client, f"{PATH}?limit=3&sort={sort}", "title", ada)
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [title for page in pages for title in page] == [
        f"Number {number}" for number in reversed(range(7))
    ]
    assert len(await titles_in(client)) == 3


async def test_a_list_shows_four_items_and_no_position(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    slug = (await a_collection(client, ada))["slug"]
    for number in range(5):
        await a_repo(client, ada, f"ada/m{number}", private=number == 1)
        await an_item(client, ada, slug, "model", f"ada/m{number}")
    (listed,) = (await client.get(PATH)).json()

    assert "position" not in listed
    assert [item["id"] for item in listed["items"]] == ["ada/m0", "ada/m2", "ada/m3", "ada/m4"]
    assert [item["position"] for item in listed["items"]] == [0, 1, 2, 3]


async def test_a_brief_list_has_names_only(client: httpx2.AsyncClient, ada: Headers) -> None:
    slug = (await a_collection(client, ada))["slug"]

    assert (await client.get(PATH, params={"expand": "false"})).json() == [
        {"title": "Wheels", "name": slug, "private": False, "upvotes": 0}
    ]


async def test_a_list_may_be_asked_for_more_than_a_page(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_collection(client, ada)

    assert await titles_in(client, limit=10_000) == ["Wheels"]


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"limit": 0}, "limit must be at least 1."),
        ({"limit": 10_001}, "limit must be at most 10000."),
        ({"sort": "stars"}, "sort must be one of "),
        ({"item": "engine"}, "item: engine must be a type and a name, as in models/ada/engine "),
        ({"item": "jobs/ada/x"}, "item: jobs/ada/x must be a type and a name"),
        ({"cursor": "nonsense"}, "cursor must be taken from the Link header of the page before."),
        ({"q": "x" * 201}, "q must have at most 200 characters."),
    ],
)
async def test_what_lists_refuse(
    client: httpx2.AsyncClient, params: dict[str, Any], sentence: str
) -> None:
    refused = await client.get(PATH, params=params)

    assert refused.status_code == 400
    assert sentence in refused.json()["error"]
