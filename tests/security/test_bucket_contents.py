"""Attacks on buckets: knowing the hash of a content is no right to it, and tells nothing of it."""

import json

import httpx2
import pytest

from hublet.core.database import Database
from people import Headers, sign_in
from repos.xet import FILE, cas_of

UNKNOWN = "1" * 64


@pytest.fixture
async def bob(client: httpx2.AsyncClient, database: Database, ada: Headers) -> Headers:
    """Bob, who has a bucket, beside ada's public one and her private one."""
    bob = await sign_in(database, "bob")
    await client.post("/api/buckets/bob/box", headers=bob, json={})
    await client.post("/api/buckets/ada/open", headers=ada, json={})
    await client.post("/api/buckets/ada/secret", headers=ada, json={"private": True})
    return bob


async def error_of(
    client: httpx2.AsyncClient, headers: Headers, xet_hash: str = FILE, *, source: str | None = None
) -> str:
    """Try to get a content into bob's bucket; return the sentence of the refusal, or nothing."""
    line = {"type": "addFile", "path": "a", "xetHash": xet_hash}
    if source is not None:
        line |= {"type": "copyFile", "sourceRepoType": "bucket", "sourceRepoId": source}
    response = await client.post(
        "/api/buckets/bob/box/batch", headers=headers, content=json.dumps(line)
    )
    failed = response.json()["failed"]
    assert (response.status_code, len(failed)) in {(200, 0), (422, 1)}
    return str(failed[0]["error"]) if failed else ""


async def show(client: httpx2.AsyncClient, ada: Headers, bucket: str) -> None:
    line = {"type": "addFile", "path": "x", "xetHash": FILE}
    response = await client.post(
        f"/api/buckets/{bucket}/batch", headers=ada, content=json.dumps(line)
    )
    assert response.json()["success"] is True


async def test_a_hash_of_somebody_else_is_as_unknown_as_any(
    client: httpx2.AsyncClient, ada: Headers, bob: Headers
) -> None:
    await (await cas_of(client, ada, repo="buckets/ada/secret")).upload()
    uploaded = await error_of(client, bob)
    await show(client, ada, "ada/secret")
    shown = await error_of(client, bob)
    unknown = await error_of(client, bob, UNKNOWN)

    assert uploaded == shown == unknown.replace(UNKNOWN, FILE)
    assert (await client.get("/api/buckets/bob/box/tree")).json() == []


async def test_a_private_source_is_as_unknown_as_any(
    client: httpx2.AsyncClient, ada: Headers, bob: Headers
) -> None:
    await (await cas_of(client, ada, repo="buckets/ada/secret")).upload()
    await show(client, ada, "ada/secret")

    private = await error_of(client, bob, source="ada/secret")
    missing = await error_of(client, bob, source="ada/nothing")
    elsewhere = await error_of(client, bob, source="ada/open")
    unknown = await error_of(client, bob, UNKNOWN, source="ada/open")

    assert private == missing.replace("ada/nothing", "ada/secret")
    assert elsewhere == unknown.replace(UNKNOWN, FILE)


async def test_an_upload_that_nothing_shows_cannot_be_copied(
    client: httpx2.AsyncClient, ada: Headers, bob: Headers
) -> None:
    await (await cas_of(client, ada, repo="buckets/ada/open")).upload()

    before = await error_of(client, bob, source="ada/open")
    await show(client, ada, "ada/open")
    after = await error_of(client, bob, source="ada/open")

    assert (before, after) == (f"bucket ada/open has no content {FILE} now.", "")


async def test_a_file_that_was_deleted_is_gone_by_its_hash_too(
    client: httpx2.AsyncClient, ada: Headers, bob: Headers
) -> None:
    await (await cas_of(client, ada, repo="buckets/ada/open")).upload()
    await show(client, ada, "ada/open")
    reading = await cas_of(client, bob, "read", repo="buckets/ada/open")
    await client.delete("/api/buckets/ada/open/files/x", headers=ada)

    assert "has no content" in await error_of(client, bob, source="ada/open")
    assert (await reading.get(f"/v2/reconstructions/{FILE}")).status_code == 404
