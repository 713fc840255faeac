"""The registry of a hub whose content lies in a bucket: two nodes, mounts, redirects, collections."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.registry import collection
from hublet.repos import pruning
from hublet.storage.contents import LARGEST_STREAMED
from hublet.storage.object_store import NEVER, blob_key, open_store
from people import Headers
from registry.image_checks import check_complete, check_no_orphans
from registry.images import (
    a_manifest,
    begin,
    code_of,
    digest_of,
    push_blob,
    push_image,
    put_manifest,
)
from repos.test_packs_store import Node, a_node

pytestmark = pytest.mark.full

LARGE = LARGEST_STREAMED + 1
OTHER = "/v2/ada/other"


@pytest.fixture
def settings(settings: Settings, bucket_url: str) -> Settings:
    return replace(settings, storage=replace(settings.storage, url=bucket_url))


@pytest.fixture
async def nodes(database: Database, ada: Headers, tmp_path: Path) -> AsyncIterator[list[Node]]:
    async with (
        a_node(database, tmp_path / "a", ada) as first,
        a_node(database, tmp_path / "b", ada) as second,
    ):
        yield [first, second]


async def test_an_upload_goes_on_at_another_node(nodes: list[Node], ada: Headers) -> None:
    layer = os.urandom(3_000_000)
    first, second = (node.client for node in nodes)
    location = await begin(first, ada)
    for client, start in ((first, 0), (second, 1_000_000), (first, 2_000_000)):
        sent = await client.patch(
            location,
            content=layer[start : start + 1_000_000],
            headers=ada | {"Content-Range": f"{start}-{start + 999_999}"},
        )
        assert (sent.status_code, sent.headers["Range"]) == (202, f"0-{start + 999_999}")

    done = await second.put(location, params={"digest": digest_of(layer)}, headers=ada)

    assert done.status_code == 201, done.text
    pulled = await first.get(done.headers["Location"], headers=ada)
    assert pulled.content == layer
    objects = open_store(nodes[0].database.hub.settings)
    assert list(objects.list("parts")) == []
    await check_complete(nodes[1].database)


async def test_a_blob_is_mounted_and_lies_there_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    layer = os.urandom(1000)
    await push_image(client, ada, layer)
    before = await asyncio.to_thread(_objects, database)

    mounted = await client.post(
        f"{OTHER}/blobs/uploads/",
        params={"mount": digest_of(layer), "from": "ada/tool"},
        headers=ada,
    )

    assert mounted.status_code == 201
    assert await asyncio.to_thread(_objects, database) == before
    pulled = await client.get(f"{OTHER}/blobs/{digest_of(layer)}", headers=ada)
    assert pulled.content == layer


def _objects(database: Database) -> set[str]:
    return {each.key.name for each in open_store(database.hub.settings).list("blobs")}


async def test_what_was_deleted_leaves_the_bucket_and_what_another_image_has_stays(
    client: httpx2.AsyncClient, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, own = os.urandom(1000), os.urandom(1000)
    manifest = await push_image(client, ada, shared, own)
    await push_image(client, ada, shared, image=OTHER)
    await client.patch(await begin(client, ada), content=b"given up", headers=ada)
    gone = await client.delete(f"/v2/ada/tool/manifests/{digest_of(manifest)}", headers=ada)
    assert gone.status_code == 202

    _without_grace(monkeypatch)
    await collection.collect(database)
    await pruning.prune(database)

    await check_complete(database)
    await check_no_orphans(database)
    missing = await client.get(f"/v2/ada/tool/blobs/{digest_of(own)}", headers=ada)
    assert missing.status_code == 404
    assert (await client.get(f"{OTHER}/blobs/{digest_of(shared)}", headers=ada)).content == shared


def _without_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    # Objects of a bucket cannot be made older, and its clock counts seconds.
    past = timedelta(seconds=-2)
    for module, name in (
        (collection, "BLOB_AGE"),
        (collection, "UPLOAD_AGE"),
        (pruning, "BLOB_AGE"),
        (pruning, "LINK_AGE"),
    ):
        monkeypatch.setattr(module, name, past)


async def test_a_large_blob_is_redirected_whole_and_in_parts(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    layer = os.urandom(LARGE)
    url = f"/v2/ada/tool/blobs/{await push_blob(client, ada, layer)}"

    head = await client.head(url, headers=ada)
    assert (head.status_code, head.headers["Content-Length"]) == (200, str(LARGE))
    answer = await client.get(url, headers=ada)

    assert answer.status_code == 302
    assert answer.headers["Docker-Content-Digest"] == digest_of(layer)
    assert answer.headers["Cache-Control"] == "private, no-store"
    address = answer.headers["Location"]
    there = await asyncio.to_thread(httpx2.get, address)
    assert there.headers["Content-Type"] == "application/octet-stream"
    assert there.content == layer
    rest = await asyncio.to_thread(
        lambda: httpx2.get(address, headers={"Range": f"bytes={LARGE - 10}-"})
    )
    assert (rest.status_code, rest.content) == (206, layer[-10:])
    reversed_range = await client.get(url, headers=ada | {"Range": "bytes=500-0"})
    assert reversed_range.status_code == 416


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "127.0.0.1"])
async def test_a_client_that_would_send_its_token_along_gets_the_blob_from_the_hub(
    client: httpx2.AsyncClient, ada: Headers, host: str
) -> None:
    layer = os.urandom(LARGE)
    digest = await push_blob(client, ada, layer)

    # The bucket is at another port of this host, which Go takes for the same.
    pulled = await client.get(f"/v2/ada/tool/blobs/{digest}", headers=ada | {"Host": host})

    assert (pulled.status_code, pulled.content) == (200, layer)


async def test_a_lost_object_is_told_and_pushed_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    layer = os.urandom(1000)
    digest = await push_blob(client, ada, layer)
    objects = open_store(database.hub.settings)
    key = blob_key(digest.removeprefix("sha256:"))
    objects.delete([key], before=NEVER)

    assert (await client.head(f"/v2/ada/tool/blobs/{digest}", headers=ada)).status_code == 404
    refused = await put_manifest(client, ada, a_manifest(layer), "1")
    assert code_of(refused) == "MANIFEST_BLOB_UNKNOWN"
    await push_blob(client, ada, layer)
    assert (await client.get(f"/v2/ada/tool/blobs/{digest}", headers=ada)).content == layer
