"""Pages of collections: lists, one collection, its forms, and where a repository is collected."""

import re

import httpx2
import pytest

from community.collection_scenes import a_collection, an_item, items_of, titles_in
from hublet.core.database import Database
from login.login_pages import a_person, log_in
from people import Headers, sign_in
from repositories import a_repo
from web.parsed_pages import HTML


@pytest.fixture
async def ada_in_browser(client: httpx2.AsyncClient, database: Database) -> Headers:
    await a_person(database)
    await log_in(client)
    return await sign_in(database, "ada")


async def page(client: httpx2.AsyncClient, path: str, status: int = 200) -> str:
    response = await client.get(path, headers=HTML)
    assert response.status_code == status, response.text
    return response.text


async def send(client: httpx2.AsyncClient, path: str, shown: str, **fields: str) -> httpx2.Response:
    """Send a form of a page that was shown."""
    # The first form of a page is the menu's.
    token = re.findall(r'name="form_token" value="([0-9a-f]+)"', shown)[-1]
    data = fields | {"form_token": token}
    return await client.post(path, data=data, headers=HTML)


async def test_a_collection_is_made_filled_and_deleted_in_a_browser(
    client: httpx2.AsyncClient, ada_in_browser: Headers
) -> None:
    for name in "ab":
        await a_repo(client, ada_in_browser, f"ada/{name}")
    new = await page(client, "/collections/new")
    fields = {"title": "Wheels", "owner": "ada", "visibility": "private", "item": "models/ada/a"}
    made = await send(client, "/collections/new", new, **fields)
    path = made.headers["location"]
    slug = path.removeprefix("/collections/")

    shown = await page(client, path)
    assert "ada/a" in shown
    added = await send(client, f"{path}/items", shown, type="model", id="ada/b", note="Second")
    assert added.status_code == 303
    wrong = await send(client, f"{path}/items", shown, type="model", id="ada/none")
    assert wrong.status_code == 422
    assert "There is no model ada/none, or you cannot see it." in wrong.text
    item_id = shown.partition(f"{path}/items/")[2][:24]
    await send(client, f"{path}/items/{item_id}", shown, position="1")
    assert await items_of(client, slug, ada_in_browser) == ["ada/b", "ada/a"]
    await send(client, f"{path}/items/{item_id}", shown, note="Mine <b>")
    assert "Mine &lt;b&gt;" in await page(client, path)
    await send(client, f"{path}/items/{item_id}", shown, remove="yes")
    assert await items_of(client, slug, ada_in_browser) == ["ada/b"]
    await send(client, f"{path}/upvote", shown, vote="yes")
    assert "Upvoted" in await page(client, path)
    edit = {"title": "Gears", "description": "x" * 151, "theme": "pink", "visibility": "public"}
    refused = await send(client, f"{path}/edit", shown, **edit)
    assert "description must have at most 150 characters." in refused.text
    await send(client, f"{path}/edit", shown, **(edit | {"description": "Toothed."}))
    assert await titles_in(client) == ["Gears"]
    deleted = await send(client, f"{path}/delete", shown)
    assert deleted.headers["location"] == "/collections"
    await page(client, path, status=404)


async def test_lists_and_profiles_show_what_their_reader_may_see(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    slug = (await a_collection(client, ada, description="All that turns."))["slug"]
    await a_collection(client, ada, "Secret wheels", private=True)
    await a_collection(client, bob, "Bolts", namespace="bob")
    for name in ("seen", "unseen"):
        await a_repo(client, ada, f"ada/{name}", private=name == "unseen")
        await an_item(client, ada, slug, "model", f"ada/{name}")

    everything = await page(client, "/collections")
    assert {"Wheels" in everything, "Bolts" in everything} == {True}
    of_owner = await page(client, "/collections?owner=ada&sort=upvotes")
    assert ("Wheels" in of_owner, "Bolts" in of_owner) == (True, False)
    for shown in (
        everything,
        await page(client, "/ada"),
        await page(client, f"/collections/{slug}"),
    ):
        assert "ada/seen" in shown
        assert "ada/unseen" not in shown
        assert "Secret" not in shown
    assert "Change" not in await page(client, f"/collections/{slug}")
    assert "None of them match." in await page(client, "/collections?q=nothing")
    of_person = await client.get("/ada/collections", headers=HTML)
    assert of_person.headers["location"] == "/collections?owner=ada"


async def test_a_repository_is_collected_on_its_page(
    client: httpx2.AsyncClient, ada_in_browser: Headers
) -> None:
    await a_repo(client, ada_in_browser, "ada/engine", type="dataset")
    slug = (await a_collection(client, ada_in_browser))["slug"]
    path = "/datasets/ada/engine/collections"

    assert path in await page(client, "/datasets/ada/engine")
    shown = await page(client, path)
    await send(client, path, shown, collection=slug)
    assert await items_of(client, slug) == ["ada/engine"]
    await send(client, path, shown, collection=slug)
    assert await items_of(client, slug) == []
