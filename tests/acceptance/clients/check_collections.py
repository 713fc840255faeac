"""Collections through the public client and its command."""

import json

import pytest
from check_command import hf
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError


def test_a_collection_from_its_creation_to_its_end(
    api: HfApi, stranger: HfApi, anonymous: HfApi, repo: str
) -> None:
    made = api.create_collection("Wheels of the client", namespace="ada", description="Turning")
    again = api.create_collection("Wheels of the client", namespace="ada", exists_ok=True)
    with pytest.raises(HfHubHTTPError):
        api.create_collection("Wheels of the client")
    assert (made.slug, made.title, made.owner["name"]) == (again.slug, made.title, "ada")

    added = api.add_collection_item(made.slug, item_id=repo, item_type="model", note="First")
    api.add_collection_item(made.slug, item_id=repo, item_type="model", exists_ok=True)
    with pytest.raises(HfHubHTTPError):
        api.add_collection_item(made.slug, item_id=repo, item_type="model")
    inner = api.create_collection("Cogs of the client", private=True)
    both = api.add_collection_item(made.slug, item_id=inner.slug, item_type="collection")
    assert [(item.item_id, item.note) for item in both.items] == [
        (repo, "First"),
        (inner.slug, None),
    ]
    item = added.items[0].item_object_id
    api.update_collection_item(made.slug, item_object_id=item, position=1, note="Now second")
    seen = api.get_collection(made.slug)
    assert [each.item_id for each in seen.items] == [inner.slug, repo]
    assert [each.item_id for each in anonymous.get_collection(made.slug).items] == [repo]

    changed = api.update_collection_metadata(
        made.slug, title="Gears of the client", description="", theme="pink", position=0
    )
    assert (changed.title, changed.theme, changed.description) == (
        "Gears of the client",
        "pink",
        None,
    )
    assert api.get_collection(made.slug).slug == changed.slug != made.slug
    with pytest.raises(HfHubHTTPError):
        stranger.update_collection_metadata(made.slug, title="Mine")
    with pytest.raises(HfHubHTTPError):
        stranger.get_collection(inner.slug)

    api.delete_collection_item(made.slug, item)
    api.delete_collection_item(made.slug, item, missing_ok=True)
    for slug in (made.slug, inner.slug):
        api.delete_collection(slug)
    api.delete_collection(made.slug, missing_ok=True)
    with pytest.raises(HfHubHTTPError):
        api.delete_collection(made.slug)


def test_lists_of_collections(api: HfApi, anonymous: HfApi, repo: str) -> None:
    slugs = [api.create_collection(f"Listed {number}").slug for number in range(3)]
    api.add_collection_item(slugs[0], item_id=repo, item_type="model")

    listed = list(anonymous.list_collections(owner="ada", sort="lastModified", limit=2))
    assert [each.slug for each in listed] == [slugs[0], slugs[2]]
    holding = list(anonymous.list_collections(item=f"models/{repo}"))
    assert [(each.slug, each.items[0].item_id) for each in holding] == [(slugs[0], repo)]
    assert len(list(anonymous.list_collections(owner=["ada"], limit=None))) >= 3
    for slug in slugs:
        api.delete_collection(slug)


def test_the_command(api: HfApi, repo: str) -> None:
    hf("collections", "create", "By command", "--description", "Made by hf")
    (made,) = [each for each in api.list_collections(owner="ada") if each.title == "By command"]
    hf("collections", "add-item", made.slug, repo, "model", "--note", "First")
    shown = json.loads(hf("collections", "info", made.slug, "--format", "json"))
    assert shown["title"] == "By command"
    item = api.get_collection(made.slug).items[0].item_object_id
    hf("collections", "update-item", made.slug, item, "--note", "Changed")
    assert api.get_collection(made.slug).items[0].note == "Changed"
    hf("collections", "update", made.slug, "--title", "Renamed")
    hf("collections", "delete-item", made.slug, item)
    assert "Renamed" in hf("collections", "ls", "--owner", "ada", "--format", "json")
    hf("collections", "delete", made.slug)
