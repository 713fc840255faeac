"""Collections beside pushes, with no grace at all: what was pushed and answered is complete."""

import asyncio
from datetime import timedelta

import httpx2
import pytest

from hublet.core.database import Database
from hublet.registry import collection
from people import Headers
from registry.image_checks import check_complete, check_files
from registry.images import a_manifest as image_manifest
from registry.images import digest_of, push_blob, put_manifest
from repositories import a_repo

PUSHERS = 4
IMAGES = 6
ROUNDS = 40
SHARED = b"a layer that all images have"


async def push_until_taken(client: httpx2.AsyncClient, who: Headers, name: str) -> None:
    """Push an image as a client does: when blobs are gone, upload them again."""
    layers = [SHARED, name.encode()]
    manifest = image_manifest(*layers)
    while True:
        for blob in (b"{}", *layers):
            head = await client.head(f"/v2/ada/tool/blobs/{digest_of(blob)}", headers=who)
            if head.status_code != 200:
                await push_blob(client, who, blob)
        response = await put_manifest(client, who, manifest, name)
        if response.status_code == 201:
            return
        assert response.json()["errors"][0]["code"] == "MANIFEST_BLOB_UNKNOWN"


async def test_an_image_that_was_taken_is_complete(
    client: httpx2.AsyncClient, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection, "BLOB_AGE", timedelta())
    repo_id = await a_repo(client, ada, "ada/tool", type="container")
    async with database.transaction() as conn:
        await conn.execute("INSERT INTO registry_retention VALUES ($1, 3, NULL)", repo_id)

    async def push(number: int) -> None:
        for image in range(IMAGES):
            await push_until_taken(client, ada, f"v{number}-{image}")

    pushes = asyncio.gather(*map(push, range(PUSHERS)))
    # Without an end, pushes would begin anew again and again.
    for _ in range(ROUNDS):
        await collection.collect(database)
    await pushes
    await collection.collect(database)
    await check_complete(database)
    await check_files(database)
    tags = (await client.get("/v2/ada/tool/tags/list", headers=ada)).json()["tags"]
    assert len(tags) == 3
