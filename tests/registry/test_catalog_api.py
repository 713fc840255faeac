"""Containers in the API: lists, tags with platforms, manifests with layers, retention."""

import httpx2
import pytest

from hublet.core.database import Database
from people import Headers, sign_in
from registry.stored_images import (
    MANIFEST,
    a_config,
    a_manifest,
    an_index,
    digest_of,
    store_blob,
    store_image,
    store_manifest,
)
from repositories import a_repo

TOOL = "/api/containers/ada/tool"


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/tool", type="container")


async def test_a_container_tells_its_images_and_tags(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    digest = await store_image(database, repo_id, "1", "latest")
    await store_image(database, repo_id, "1", image="gpu")

    info = (await client.get(TOOL)).json()
    tags = (await client.get(f"{TOOL}/tags", params={"image": "", "search": "LAT"})).json()

    assert (info["tagCount"], info["downloads"], info["totalFiles"]) == (3, 0, 5)
    assert [(each["name"], each["tagCount"]) for each in info["images"]] == [
        ("ada/tool", 2),
        ("ada/tool/gpu", 1),
    ]
    assert (await client.get(f"{TOOL}/images")).json() == info["images"]
    assert tags == [
        {
            "name": "latest",
            "image": "ada/tool",
            "digest": digest,
            "mediaType": MANIFEST,
            "artifactType": "application/vnd.oci.image.config.v1+json",
            "size": tags[0]["size"],
            "platforms": ["linux/amd64"],
            "pushedAt": tags[0]["pushedAt"],
            "pushedBy": "ada",
        }
    ]


async def test_layers_have_sizes_and_the_commands_that_made_them(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    layers = [b"base", b"more of it"]
    config = a_config("/bin/sh -c #(nop) ADD file in /", "RUN make", Cmd=["tool"], User="ada")
    digest = await store_image(database, repo_id, "1", layers=layers, config=config)

    by_tag = (await client.get(f"{TOOL}/manifests/1")).json()
    by_digest = (await client.get(f"{TOOL}/manifests/{digest}")).json()

    assert by_tag == by_digest
    assert [(each["size"], each["command"]) for each in by_tag["layers"]] == [
        (4, "ADD file in /"),
        (10, "RUN make"),
    ]
    assert by_tag["config"] | {"exposedPorts": []} == {
        "platform": "linux/amd64",
        "entrypoint": [],
        "command": ["tool"],
        "user": "ada",
        "workingDirectory": None,
        "exposedPorts": [],
    }
    assert by_tag["size"] == len(a_manifest(config, layers)) + len(config) + 14


async def test_an_index_tells_the_platforms_of_its_manifests(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    arm, never_pushed = a_config("a", architecture="arm64"), a_manifest(b"{}", [])
    children = {"linux/arm64": a_manifest(arm, [b"layer"]), "unknown/unknown": never_pushed}
    await store_image(database, repo_id, config=arm)
    digest = await store_manifest(database, repo_id, index := an_index(children), "1")

    [tag] = (await client.get(f"{TOOL}/tags")).json()
    manifest = (await client.get(f"{TOOL}/manifests/{digest}")).json()

    size = len(children["linux/arm64"]) + len(arm) + 5
    assert (tag["platforms"], tag["size"]) == (["linux/arm64"], len(index) + size)
    assert [(each["platform"], each["size"]) for each in manifest["manifests"]] == [
        ("linux/arm64", size),
        (None, None),
    ]
    assert (manifest["layers"], manifest["config"]) == ([], None)


async def test_tags_come_page_by_page_the_newest_first(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    for number in range(5):
        await store_image(database, repo_id, f"v{number}", layers=[b"%d" % number])
    names, url = [], f"{TOOL}/tags?limit=2"
    while url:
        response = await client.get(url)
        names.append([each["name"] for each in response.json()])
        url = response.links.get("next", {}).get("url", "")

    assert names == [["v4", "v3"], ["v2", "v1"], ["v0"]]


async def test_an_artifact_of_any_shape_is_shown(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    content = b'{"mediaType": "application/x.chart", "layers": [], "extra": {"layers": 1}}'
    digest = await store_manifest(database, repo_id, content, "1")

    manifest = (await client.get(f"{TOOL}/manifests/{digest}")).json()

    assert (manifest["layers"], manifest["platforms"], manifest["mediaType"]) == (
        [],
        [],
        "application/x.chart",
    )


@pytest.mark.parametrize("reference", ["nope", digest_of(b"nothing")])
async def test_a_manifest_that_is_not_there_is_not_found(
    client: httpx2.AsyncClient, repo_id: str, reference: str
) -> None:
    response = await client.get(f"{TOOL}/manifests/{reference}")

    assert response.status_code == 404
    assert response.json() == {"error": f"The image has no manifest {reference}."}


async def test_lists_have_only_containers_that_the_caller_may_see(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    grace = await sign_in(database, "grace")
    await a_repo(client, grace, "grace/secret", type="container", private=True)
    await a_repo(client, grace, "grace/loom", type="container")
    await store_image(database, repo_id, "1")

    seen = (await client.get("/api/containers", headers=ada)).json()
    own = (await client.get("/api/containers", headers=grace, params={"author": "grace"})).json()
    found = (await client.get("/api/containers", params={"search": "too"})).json()

    assert [(each["id"], each["tagCount"]) for each in seen] == [("grace/loom", 0), ("ada/tool", 1)]
    assert [each["id"] for each in own] == ["grace/loom", "grace/secret"]
    assert [each["id"] for each in found] == ["ada/tool"]


async def test_strangers_see_nothing_of_a_private_container(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo = await a_repo(client, ada, "ada/vault", type="container", private=True)
    await store_image(database, repo, "1")
    grace = await sign_in(database, "grace")

    for end in ("", "/images", "/tags", "/manifests/1", "/retention"):
        path = f"/api/containers/ada/vault{end}"
        assert (await client.get(path, headers=grace)).status_code == 404
        assert (await client.get(path, headers=ada)).status_code == 200


async def test_retention_is_set_field_by_field(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    path, grace = f"{TOOL}/retention", await sign_in(database, "grace")
    before = await client.get(path, headers=ada)
    first = await client.put(path, headers=ada, json={"keepTags": 5, "untaggedDays": 30})
    second = await client.put(path, headers=ada, json={"keepTags": None})
    refused = await client.put(path, headers=grace, json={"keepTags": 1})

    assert before.json() == {"keepTags": None, "untaggedDays": None}
    assert first.json() == {"keepTags": 5, "untaggedDays": 30}
    assert second.json() == {"keepTags": None, "untaggedDays": 30}
    assert refused.status_code == 403
    assert (await client.get(path, headers=ada)).json() == second.json()


@pytest.mark.parametrize(("field", "value"), [("keepTags", 0), ("untaggedDays", 4000)])
async def test_a_retention_out_of_range_is_refused(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str, field: str, value: int
) -> None:
    response = await client.put(f"{TOOL}/retention", headers=ada, json={field: value})

    assert response.status_code == 400
    assert response.json()["error"].startswith(f"{field} must be a whole number from 1 to ")


async def test_the_files_of_the_registry_are_listed_and_resolved(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    digest = await store_blob(database, repo_id, b"layer")
    await store_image(database, repo_id, "1", image="gpu")
    path = digest.replace(":", "/")

    tree = (await client.get(f"{TOOL}/tree", params={"recursive": False})).json()
    content = await client.get(f"/containers/ada/tool/resolve/blobs/{path}")
    manifest = await client.get("/containers/ada/tool/resolve/manifests/gpu/_tags/1")

    assert [each["path"] for each in tree] == ["blobs", "manifests"]
    assert content.content == b"layer"
    assert manifest.json()["mediaType"] == MANIFEST
