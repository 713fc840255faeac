"""Collections: creating, reading, changing and deleting them, their items and votes."""

from typing import Any

import httpx2
import pytest
from huggingface_hub import Collection as ClientCollection

from community.collection_scenes import PATH, a_collection, an_item, items_of, titles_in
from community.public_threads import PAPER
from hublet.core.database import Database
from hublet.events import CollectionCreated, CollectionDeleted, CollectionUpdated
from outbox_events import published_events
from people import Headers, a_user, sign_in
from repositories import a_repo

EVERY_TYPE = ["model", "dataset", "space", "kernel", "bucket", "container"]


async def test_a_collection_of_everything(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    created = await a_collection(client, ada, description="All that turns.")
    other = await a_collection(client, ada, "Cogs")
    slug = created["slug"]
    for type_ in EVERY_TYPE:
        await a_repo(client, ada, f"ada/{type_}-wheel", type=type_)
        await an_item(client, ada, slug, type_, f"ada/{type_}-wheel")
    await client.post("/api/papers/index", headers=ada, json=PAPER | {"arxivId": "2401.12345"})
    await an_item(client, ada, slug, "paper", "2401.12345", note="Read <this>\nfirst")
    shown = await an_item(client, ada, slug, "collection", other["slug"])

    assert shown["slug"] == slug
    assert [item["type"] for item in shown["items"]] == [*EVERY_TYPE, "paper", "collection"]
    assert [item["position"] for item in shown["items"]] == list(range(8))
    paper, listed = shown["items"][-2:]
    assert paper["note"] == {
        "html": "<p>Read &lt;this&gt;<br>first</p>",
        "text": "Read <this>\nfirst",
    }
    assert (listed["slug"], listed["id"], listed["numberItems"]) == (
        other["slug"],
        other["slug"][-24:],
        0,
    )
    read = (await client.get(f"{PATH}/{slug}")).json()
    assert read == shown | {"isUpvotedByUser": False}
    client_view = ClientCollection(**read, endpoint="http://hub.test")
    assert client_view.items[-1].item_id == other["slug"]
    assert (client_view.title, client_view.position, client_view.theme) == ("Wheels", 0, "orange")


async def test_what_a_new_collection_is(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    user = await a_user(database, "ada")
    created = await a_collection(client, ada, "  Größe & 'Wheels' ")

    collection_id = created["slug"][-24:]
    assert created == {
        "slug": f"ada/groe-wheels-{collection_id}",
        "title": "Größe & 'Wheels'",
        "lastUpdated": created["lastUpdated"],
        "gating": False,
        "owner": {
            "_id": user.id,
            "name": "ada",
            "fullname": "ada",
            "avatarUrl": f"http://hub.test/avatars/{user.id}",
            "type": "user",
            "isHf": False,
            "isHfAdmin": False,
            "isMod": False,
            "isPro": False,
        },
        "theme": "orange",
        "private": False,
        "upvotes": 0,
        "shareUrl": f"http://hub.test/collections/ada/groe-wheels-{collection_id}",
        "isUpvotedByUser": False,
        "items": [],
        "position": 0,
    }
    assert await published_events(database, CollectionCreated) == [
        {"collection_id": collection_id, "owner_id": user.id, "actor_id": user.id}
    ]


async def test_a_title_without_latin_letters_has_an_address_too(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    wheels = await a_collection(client, ada, "車輪")
    cogs = await a_collection(client, ada, "歯車")

    assert wheels["slug"].startswith("ada/collection-")
    assert wheels["slug"] != cogs["slug"]


async def test_a_collection_begins_with_an_item(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_repo(client, ada, "ada/engine")
    created = await a_collection(client, ada, item={"type": "model", "id": "ada/engine"})
    body = {"title": "Cogs", "namespace": "ada", "item": {"type": "model", "id": "ada/none"}}
    refused = await client.post(PATH, headers=ada, json=body)

    assert [item["id"] for item in created["items"]] == ["ada/engine"]
    assert refused.status_code == 404
    assert refused.json() == {"error": "There is no model ada/none, or you cannot see it."}
    assert await titles_in(client) == ["Wheels"]


async def test_a_title_that_is_taken_names_the_slug(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    created = await a_collection(client, ada)
    again = await client.post(PATH, headers=ada, json={"title": "wheels", "namespace": "Ada"})

    assert again.status_code == 409
    assert again.json() == {
        "error": f"There is a collection with the title Wheels already: {created['slug']}.",
        "slug": created["slug"],
    }


async def test_a_slug_survives_a_new_title(client: httpx2.AsyncClient, ada: Headers) -> None:
    old = (await a_collection(client, ada))["slug"]
    await a_collection(client, ada, "Cogs")
    change = {"title": "Gears", "description": "Toothed.", "theme": "pink", "private": True}
    changed = await client.patch(f"{PATH}/{old}", headers=ada, json=change)
    taken = await client.patch(f"{PATH}/{old}", headers=ada, json={"title": "COGS"})

    data = changed.json()["data"]
    assert changed.json()["success"] is True
    assert {name: data[name] for name in change} == change
    assert data["slug"] == f"ada/gears-{old[-24:]}"
    for address in (old, data["slug"], "ada/gears", f"ADA/anything-{old[-24:]}"):
        assert (await client.get(f"{PATH}/{address}", headers=ada)).json() == data
    for address in ("ada/wheels", "bob/wheels-" + old[-24:], "ada/" + "0" * 24):
        assert (await client.get(f"{PATH}/{address}", headers=ada)).status_code == 404
    assert taken.status_code == 409


async def test_an_empty_description_removes_it(client: httpx2.AsyncClient, ada: Headers) -> None:
    slug = (await a_collection(client, ada, description="All that turns."))["slug"]
    changed = await client.patch(f"{PATH}/{slug}", headers=ada, json={"description": ""})

    assert "description" not in changed.json()["data"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"title": ""}, "title must have at least 1 character"),
        ({"title": "x" * 61}, "title must have at most 60 characters."),
        ({"title": "a\nb"}, "must be a single line without control characters"),
        ({"description": "x" * 151}, "description must have at most 150 characters."),
        ({"theme": "red"}, "theme must be one of "),
        ({"private": "yes"}, "private must be true or false."),
        ({"position": -1}, "position must be at least 0."),
        ({"position": 1.5}, "position must be an integer."),
        ({"gating": {"mode": "auto"}}, "gating must be "),
        ({"owner": "bob"}, "owner is not a known field."),
    ],
)
async def test_what_a_collection_cannot_become(
    client: httpx2.AsyncClient, ada: Headers, change: dict[str, Any], sentence: str
) -> None:
    created = await a_collection(client, ada)
    refused = await client.patch(f"{PATH}/{created['slug']}", headers=ada, json=change)

    assert refused.status_code == 400
    assert sentence in refused.json()["error"]
    assert (await client.get(f"{PATH}/{created['slug']}", headers=ada)).json() == created


async def test_collections_of_an_owner_are_ordered(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    slugs = [(await a_collection(client, ada, title))["slug"] for title in "ABC"]

    moved = await client.patch(f"{PATH}/{slugs[2]}", headers=ada, json={"position": 0})
    far = await client.patch(f"{PATH}/{slugs[0]}", headers=ada, json={"position": 99})

    assert moved.json()["data"]["position"] == 0
    assert far.json()["data"]["position"] == 2
    assert (await client.get(f"{PATH}/{slugs[1]}")).json()["position"] == 1


async def test_items_are_noted_moved_and_removed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    slug = (await a_collection(client, ada))["slug"]
    for name in "abcd":
        await a_repo(client, ada, f"ada/{name}")
        shown = await an_item(client, ada, slug, "model", f"ada/{name}")
    ids = [item["_id"] for item in shown["items"]]

    await client.patch(f"{PATH}/{slug}/items/{ids[3]}", headers=ada, json={"position": 1})
    assert await items_of(client, slug) == ["ada/a", "ada/d", "ada/b", "ada/c"]
    noted = await client.patch(f"{PATH}/{slug}/items/{ids[0]}", headers=ada, json={"note": "Mine"})
    assert noted.json()["items"][0]["note"]["text"] == "Mine"
    cleared = await client.patch(f"{PATH}/{slug}/items/{ids[0]}", headers=ada, json={"note": ""})
    assert "note" not in cleared.json()["items"][0]
    removed = await client.delete(f"{PATH}/{slug}/items/{ids[1]}", headers=ada)
    again = await client.delete(f"{PATH}/{slug}/items/{ids[1]}", headers=ada)
    assert (removed.json(), again.status_code) == ({}, 404)
    assert again.json() == {
        "error": f"There is no item {ids[1]} in the collection {slug}, or you cannot see it."
    }
    assert await items_of(client, slug) == ["ada/a", "ada/d", "ada/c"]
    updates = await published_events(database, CollectionUpdated)
    assert [event["changed"] for event in updates] == [["items"]] * 8


async def test_a_batch_changes_all_items_or_none(client: httpx2.AsyncClient, ada: Headers) -> None:
    slug = (await a_collection(client, ada))["slug"]
    for name in "abc":
        await a_repo(client, ada, f"ada/{name}")
        shown = await an_item(client, ada, slug, "model", f"ada/{name}")
    a, _, c = [item["_id"] for item in shown["items"]]
    pictures = ["https://pictures.test/wheel.png"]
    good = [
        {"action": "update", "_id": c, "data": {"position": 0, "note": "First"}},
        {"action": "update", "_id": a, "data": {"position": 2, "gallery": pictures}},
    ]
    bad = [*good, {"action": "update", "_id": "0" * 24, "data": {"note": "Nowhere"}}]

    refused = await client.post(f"{PATH}/{slug}/items/batch", headers=ada, json=bad)
    assert (refused.status_code, await items_of(client, slug)) == (404, ["ada/a", "ada/b", "ada/c"])
    changed = await client.post(f"{PATH}/{slug}/items/batch", headers=ada, json=good)
    assert [item["id"] for item in changed.json()["items"]] == ["ada/c", "ada/b", "ada/a"]
    assert changed.json()["items"][0]["note"]["text"] == "First"
    assert changed.json()["items"][2]["gallery"] == pictures


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"item": {"type": "model", "id": "ada/none"}}, 404, "There is no model ada/none, or you"),
        ({"item": {"type": "model", "id": "gpt2"}}, 404, "There is no model gpt2, or you"),
        ({"item": {"type": "paper", "id": "2401.99999"}}, 404, "There is no paper 2401.99999"),
        ({"item": {"type": "collection", "id": "ada/x"}}, 404, "There is no collection ada/x"),
        ({"item": {"type": "job", "id": "ada/engine"}}, 400, "item.type must be one of "),
        (
            {"item": {"type": "model", "id": "ada/engine"}, "note": "x" * 501},
            400,
            "note must have at most 500 characters.",
        ),
        ({"item": {"type": "model", "id": ""}}, 400, "item.id must have at least 1 "),
        ({}, 400, "item is required."),
    ],
)
async def test_what_cannot_be_an_item(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, Any], status: int, sentence: str
) -> None:
    slug = (await a_collection(client, ada))["slug"]
    await a_repo(client, ada, "ada/engine")
    refused = await client.post(f"{PATH}/{slug}/items", headers=ada, json=body)

    assert refused.status_code == status
    assert sentence in refused.json()["error"]
    assert await items_of(client, slug) == []


async def test_an_item_is_added_once_and_a_collection_never_to_itself(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    slug = (await a_collection(client, ada))["slug"]
    await a_repo(client, ada, "ada/engine")
    await an_item(client, ada, slug, "model", "ada/engine")
    item = {"item": {"type": "model", "id": "ada/Engine"}}
    again = await client.post(f"{PATH}/{slug}/items", headers=ada, json=item)
    item = {"item": {"type": "collection", "id": slug}}
    itself = await client.post(f"{PATH}/{slug}/items", headers=ada, json=item)

    assert again.status_code == 409
    assert again.json() == {"error": f"The model ada/Engine is in the collection {slug} already."}
    assert itself.json() == {"error": "item: a collection cannot hold itself."}


async def test_items_follow_renames_and_leave_with_what_is_deleted(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    slug = (await a_collection(client, ada))["slug"]
    inner = (await a_collection(client, ada, "Inner"))["slug"]
    for name in ("old", "gone"):
        await a_repo(client, ada, f"ada/{name}")
        await an_item(client, ada, slug, "model", f"ada/{name}")
    await an_item(client, ada, slug, "collection", inner)
    move = {"fromRepo": "ada/old", "toRepo": "ada/new"}
    await client.post("/api/repos/move", headers=ada, json=move)
    await client.request("DELETE", "/api/repos/delete", headers=ada, json={"name": "ada/gone"})
    await client.delete(f"{PATH}/{inner}", headers=ada)

    assert await items_of(client, slug) == ["ada/new"]
    assert await titles_in(client, item="models/ada/old") == ["Wheels"]
    assert await titles_in(client, item="models/ada/gone") == []


async def test_a_deleted_collection_is_gone(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    slug = (await a_collection(client, ada))["slug"]
    await client.post(f"{PATH}/{slug}/upvote", headers=ada)
    deleted = await client.delete(f"{PATH}/{slug}", headers=ada)
    again = await client.delete(f"{PATH}/{slug}", headers=ada)

    assert (deleted.status_code, deleted.json()) == (200, {})
    assert again.json() == {"error": f"There is no collection {slug}, or you cannot see it."}
    assert len(await published_events(database, CollectionDeleted)) == 1


async def test_everybody_votes_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    slug = (await a_collection(client, ada))["slug"]
    bob = await sign_in(database, "bob")
    for headers in (ada, bob, bob):
        voted = await client.post(f"{PATH}/{slug}/upvote", headers=headers)

    assert voted.json() == {"upvotes": 2, "isUpvotedByUser": True}
    assert (await client.get(f"{PATH}/{slug}", headers=bob)).json()["isUpvotedByUser"] is True
    for _ in range(2):
        back = await client.delete(f"{PATH}/{slug}/upvote", headers=bob)
    assert back.json() == {"upvotes": 1, "isUpvotedByUser": False}


async def test_a_full_collection_and_a_full_owner_say_so(
    client: httpx2.AsyncClient, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hublet.community.collections.items.MOST_ITEMS", 1)
    monkeypatch.setattr("hublet.community.collections.service.MOST_COLLECTIONS", 1)
    slug = (await a_collection(client, ada))["slug"]
    for name in "ab":
        await a_repo(client, ada, f"ada/{name}")
    await an_item(client, ada, slug, "model", "ada/a")
    item = {"item": {"type": "model", "id": "ada/b"}}
    full = await client.post(f"{PATH}/{slug}/items", headers=ada, json=item)
    more = await client.post(PATH, headers=ada, json={"title": "More", "namespace": "ada"})

    assert full.json() == {"error": "item: a collection holds at most 1 items."}
    assert more.json() == {"error": "namespace: an owner has at most 1 collections."}
