"""Large files that clients send to the bucket themselves: checked before anything serves them."""

import asyncio
import os
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from hublet.core import clock
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.repos.lfs import direct_uploads
from hublet.storage.object_store import open_store
from people import Headers
from repos import lfs
from repos.content import sha256
from repositories import a_repo

pytestmark = pytest.mark.full

CONTENT = os.urandom(11 << 20)
VERIFY = "/ada/engine.git/info/lfs/objects/verify"


@pytest.fixture
def settings(settings: Settings, bucket_url: str) -> Settings:
    return replace(settings, storage=replace(settings.storage, url=bucket_url))


async def action(client: httpx2.AsyncClient, ada: Headers, **more: Any) -> dict[str, Any]:
    [answer] = (await lfs.batch(client, ada, lfs.object_requests(CONTENT), **more)).json()[
        "objects"
    ]
    found: dict[str, Any] = answer["actions"]
    return found


async def put(href: str, content: bytes) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=60) as outside:
        return await outside.put(href, content=content)


async def verify(client: httpx2.AsyncClient, ada: Headers) -> httpx2.Response:
    [body] = lfs.object_requests(CONTENT)
    return await client.post(VERIFY, headers=ada | lfs.LFS, json=body)


async def rows(database: Database) -> int:
    async with database.read() as conn:
        count: int = await conn.fetch_value("SELECT count(*) FROM direct_uploads")
    return count


async def test_an_object_goes_to_the_bucket_and_is_checked_there(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bucket_url: str
) -> None:
    await a_repo(client, ada, "ada/engine")
    href = (await action(client, ada))["upload"]["href"]
    assert href.startswith(bucket_url.partition("endpoint=")[2].partition("&")[0])

    assert (await put(href, CONTENT)).status_code == 200
    assert (await action(client, ada)).keys() == {"upload", "verify"}
    verified = await asyncio.gather(*(verify(client, ada) for _ in range(3)))
    assert [each.status_code for each in verified] == [200] * 3

    download = (await action(client, ada, operation="download"))["download"]["href"]
    async with httpx2.AsyncClient() as outside:
        assert (await outside.get(download)).content == CONTENT
    # Whoever kept the address can change nothing any more.
    assert (await put(href, b"other")).status_code == 404
    assert list(open_store(database.hub.settings).list("uploads")) == []


async def test_bytes_with_another_digest_are_refused_and_removed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    await put((await action(client, ada))["upload"]["href"], b"x" * len(CONTENT))

    refused = await verify(client, ada)

    assert refused.status_code == 400
    assert refused.json()["error"] == (
        f"The upload must have {len(CONTENT)} bytes with the SHA-256 {sha256(CONTENT)}, and has "
        "others; begin it anew."
    )
    [answer] = (
        await lfs.batch(client, ada, lfs.object_requests(CONTENT), operation="download")
    ).json()["objects"]
    assert answer["error"]["code"] == 404
    assert [*open_store(database.hub.settings).list("uploads")] == []
    assert await rows(database) == 0


async def test_parts_are_put_together_by_the_hub(
    client: httpx2.AsyncClient, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await a_repo(client, ada, "ada/engine")
    half = 6 << 20
    monkeypatch.setattr(direct_uploads, "part_sizes", lambda size: [half, size - half])
    upload = (await action(client, ada))["upload"]
    first = await put(upload["header"]["1"], CONTENT[:half])
    second = await put(upload["header"]["2"], CONTENT[half:])
    parts = [
        {"partNumber": number, "etag": sent.headers["ETag"]}
        for number, sent in enumerate((first, second), start=1)
    ]
    body = {"oid": sha256(CONTENT), "parts": parts}

    wrong = await client.post(upload["href"], json=body | {"parts": parts[:1]})
    done = await client.post(upload["href"], json=body)
    again = await client.post(upload["href"], json=body)

    assert (wrong.status_code, done.status_code, again.status_code) == (400, 200, 200)
    assert (await verify(client, ada)).status_code == 200
    assert await rows(database) == 0


async def test_a_very_large_upload_is_checked_by_a_worker(
    client: httpx2.AsyncClient, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await a_repo(client, ada, "ada/engine")
    monkeypatch.setattr(direct_uploads, "LARGEST_CHECKED_AT_ONCE", 1)
    await put((await action(client, ada))["upload"]["href"], CONTENT)

    waits = await verify(client, ada)
    assert (waits.status_code, waits.headers["Retry-After"]) == (503, "10")
    [refused] = (await lfs.batch(client, ada, lfs.object_requests(CONTENT))).json()["objects"]
    assert refused["error"]["code"] == 503
    async with database.read() as conn:
        upload = await conn.fetch_value("SELECT id FROM direct_uploads")
    await direct_uploads.check_upload(database, {"id": upload})

    assert (await verify(client, ada)).status_code == 200


async def test_uploads_that_were_given_up_are_aborted(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    href = (await action(client, ada))["upload"]["href"]
    await put(href, CONTENT)

    await direct_uploads.remove_given_up(database)
    assert await rows(database) == 1
    clock.move(timedelta(days=2, seconds=1))
    await direct_uploads.remove_given_up(database)

    assert await rows(database) == 0
    assert (await put(href, CONTENT)).status_code == 404


async def test_browsers_and_small_files_go_through_the_hub(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")

    from_browser = await action(client, ada | {"Origin": "http://hub.test"})
    small = await lfs.upload_href(client, ada, b"small")

    assert from_browser["upload"]["href"].startswith("http://hub.test/api/lfs/")
    assert small.startswith("http://hub.test/api/lfs/")
