"""Ingestion: what arrives by other ways than Xet is cut, and stays readable all the time."""

import base64
import hashlib
import json
import os
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.errors import Unavailable
from hublet.repos import blobs_store, usage_store
from hublet.repos.xet import ingestion, ingestion_store
from hublet.storage import chunker
from hublet.storage.object_store import LocalStore, blob_key, open_store
from hublet.storage.records import Content
from hublet.storage.workers import processes
from people import Headers, sign_in
from repos.content import pointer, put, put_blob, sha256
from repos.lfs import upload_href
from repositories import a_repo

# As the public client says of these bytes.
NOISE = hashlib.shake_256(b"x").digest(131_073)
HASH_OF_NOISE = "1fcfd894d5164fffa1ca36ee874d985d2273c7dda577f286ee6e73c59a691603"
FILE = "/ada/engine/resolve/main/noise.bin"


@pytest.fixture(autouse=True)
def unpaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingestion, "_LONGEST_PAUSE_SECONDS", 0)


def noise(size: int, seed: bytes = b"y") -> bytes:
    return hashlib.shake_256(seed).digest(size)


async def content_of(
    database: Database, content: bytes, *, repo: str = "engine", owner: str = "ada"
) -> Content:
    """Return where a content lies, as a repository sees it."""
    digest = sha256(content)
    async with database.read() as conn:
        repo_id = await conn.fetch_value(
            """
            SELECT r.id FROM repos r JOIN users u ON u.id = r.owner_id
            WHERE r.name = $1 AND u.name = $2
            """,
            repo, owner,
        )  # fmt: skip
        return (await blobs_store.find_contents(conn, repo_id, [digest]))[digest]


async def rows(database: Database, sql: str) -> list[tuple[Any, ...]]:
    async with database.read() as conn:
        return [tuple(row) for row in await conn.fetch_all(sql)]


async def stored_bytes(database: Database) -> int:
    return sum(size for (size,) in await rows(database, "SELECT stored_size FROM xorbs"))


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


async def test_a_file_of_lfs_is_cut_as_the_public_client_cuts(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    href = await upload_href(client, ada, NOISE)
    await client.put(href, content=NOISE)
    await put(database, repo_id, {"noise.bin": pointer(NOISE)})
    assert (await content_of(database, NOISE)).is_whole

    await ingestion.cut_waiting(database)

    content = await content_of(database, NOISE)
    assert (content.xet_hash, content.is_whole) == (HASH_OF_NOISE, False)
    assert (await client.get(FILE, headers=ada)).content == NOISE
    part = await client.get(FILE, headers=ada | {"Range": "bytes=70000-130999"})
    assert (part.status_code, part.content) == (206, NOISE[70_000:131_000])


async def test_uploads_schedule_the_cutting(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    await client.put(await upload_href(client, ada, NOISE), content=NOISE)
    tasks = await rows(database, "SELECT kind FROM tasks")
    assert (chunker.CUT,) in tasks


async def test_a_changed_copy_stores_little_more(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    content = noise(13_000_000)
    changed = content[:9_000_000] + b"inserted" + content[9_000_100:]
    await put_blob(database, repo_id, content)
    await ingestion.cut_waiting(database)
    before = await stored_bytes(database)
    await put_blob(database, repo_id, changed)
    await ingestion.cut_waiting(database)

    assert await stored_bytes(database) - before <= 0.01 * len(content)
    await put(database, repo_id, {"noise.bin": pointer(changed)})
    assert (await client.get(FILE, headers=ada)).content == changed


async def test_a_file_of_a_bucket_has_its_hash_when_the_upload_ends(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/tub", type="bucket")
    path = "/api/buckets/ada/tub/files/noise.bin"
    response = await client.put(path, headers=ada, content=NOISE)
    assert response.status_code == 200, response.text

    content = await content_of(database, NOISE, repo="tub")
    assert (content.xet_hash, content.is_whole) == (HASH_OF_NOISE, False)
    read = await client.get("/buckets/ada/tub/resolve/noise.bin", headers=ada)
    assert read.content == NOISE


async def test_small_contents_of_a_batch_share_a_xorb(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/tub", type="bucket")
    contents = [noise(500, bytes([number])) for number in range(5)] + [b""]
    lines = [
        json.dumps(
            {
                "type": "addFile",
                "path": f"{number}.bin",
                "content": base64.b64encode(content).decode(),
                "mtime": 0,
            }
        )
        for number, content in enumerate(contents)
    ]
    response = await client.post(
        "/api/buckets/ada/tub/batch",
        headers=ada | {"Content-Type": "application/x-ndjson"},
        content="\n".join(lines),
    )
    assert response.status_code == 200, response.text

    assert await rows(database, "SELECT chunks FROM xorbs") == [(5,)]
    assert (await content_of(database, b"", repo="tub")).xet_hash == "0" * 64
    for number, content in enumerate(contents):
        read = await client.get(f"/buckets/ada/tub/resolve/{number}.bin", headers=ada)
        assert read.content == content


async def test_what_was_interrupted_is_done_later(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    repo_id: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await put_blob(database, repo_id, NOISE)
    await put(database, repo_id, {"noise.bin": pointer(NOISE)})
    with monkeypatch.context() as patch:
        patch.setattr(ingestion, "_schedule_removal", _break)
        with pytest.raises(RuntimeError):
            await ingestion.cut_waiting(database)
    assert (await content_of(database, NOISE)).xet_hash is None
    assert await rows(database, "SELECT * FROM layout_segments") == []
    assert (await client.get(FILE, headers=ada)).content == NOISE

    await ingestion.cut_waiting(database)
    assert (await content_of(database, NOISE)).xet_hash == HASH_OF_NOISE
    assert (await client.get(FILE, headers=ada)).content == NOISE


async def _break(*_: object) -> None:
    raise RuntimeError


async def test_after_a_worker_process_died_there_are_new_ones(
    database: Database, repo_id: str
) -> None:
    await put_blob(database, repo_id, NOISE)
    with pytest.raises(Unavailable):
        await processes.run_long(os._exit, 1)
    await ingestion.cut_waiting(database)
    assert (await content_of(database, NOISE)).xet_hash == HASH_OF_NOISE


async def test_a_damaged_content_stays_whole_and_others_are_cut(
    database: Database, repo_id: str
) -> None:
    damaged = noise(20_000)
    for content in (damaged, NOISE):
        await put_blob(database, repo_id, content)
    path_of(database, damaged).write_bytes(noise(20_000, b"other"))

    await ingestion.cut_waiting(database)

    assert (await content_of(database, damaged)).xet_hash is None
    assert (await content_of(database, NOISE)).xet_hash == HASH_OF_NOISE


def path_of(database: Database, content: bytes) -> Any:
    store = open_store(database.hub.settings)
    assert isinstance(store, LocalStore)
    return store.local_path(blob_key(sha256(content)))


async def test_contents_that_no_repository_has_are_not_cut(database: Database) -> None:
    await put_blob(database, None, NOISE)
    await ingestion.cut_waiting(database)
    assert (await content_of(database, NOISE)).xet_hash is None
    async with database.read() as conn:
        assert await usage_store.count_uncut(conn) == 0


async def test_the_whole_object_goes_an_hour_after_the_cut(
    database: Database, repo_id: str
) -> None:
    uncut = noise(9_000)
    await put_blob(database, repo_id, NOISE)
    await ingestion.cut_waiting(database)
    await put_blob(database, repo_id, uncut)
    old = (clock.now() - clock.offset() - timedelta(hours=2)).timestamp()
    for content in (NOISE, uncut):
        os.utime(path_of(database, content), (old, old))

    # Somebody may just have looked it up.
    await ingestion.remove_whole_copies(database)
    assert path_of(database, NOISE).exists()

    await _cut_two_hours_ago(database)
    await ingestion.remove_whole_copies(database)
    assert not path_of(database, NOISE).exists()
    assert path_of(database, uncut).exists()


async def test_a_whole_object_that_arrived_again_is_left_alone_for_an_hour(
    database: Database, repo_id: str
) -> None:
    await put_blob(database, repo_id, NOISE)
    await ingestion.cut_waiting(database)
    await _cut_two_hours_ago(database)
    await put_blob(database, repo_id, NOISE)

    await ingestion.remove_whole_copies(database)

    assert path_of(database, NOISE).exists()
    assert not (await content_of(database, NOISE)).is_whole


async def _cut_two_hours_ago(database: Database) -> None:
    async with database.transaction() as conn:
        before = clock.micros() - 2 * 3_600_000_000
        await conn.execute("UPDATE blobs SET created_at = $1", before)


async def test_clients_find_what_was_cut_through_its_first_chunk(
    database: Database, repo_id: str
) -> None:
    await put_blob(database, repo_id, NOISE)
    await ingestion.cut_waiting(database)
    [(repo, xorb, following)] = await rows(
        database, "SELECT repo_id, xorb, next_xorbs FROM repo_chunks"
    )
    assert (repo, following) == (repo_id, "[]")
    assert await rows(database, "SELECT name FROM xorbs") == [(xorb,)]


async def test_each_repository_cuts_for_itself_and_equal_xorbs_are_stored_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    """So how a content is packed tells nothing of what others have."""
    grace = await sign_in(database, "grace")
    other = await a_repo(client, grace, "grace/loom")
    shared, secret = noise(9_000), noise(9_000, b"secret")
    for content in (shared, secret):
        await put_blob(database, repo_id, content)
    await ingestion.cut_waiting(database)
    await put_blob(database, other, shared)
    uncut = await content_of(database, shared, repo="loom", owner="grace")
    assert (uncut.xet_hash, uncut.is_whole) == (None, False)

    await ingestion.cut_waiting(database)
    of_ada = await content_of(database, shared)
    of_grace = await content_of(database, shared, repo="loom", owner="grace")
    assert of_ada.xet_hash == of_grace.xet_hash
    assert [each.xorb for each in of_ada.segments] != [each.xorb for each in of_grace.segments]
    [own] = await rows(
        database,
        "SELECT repo_id, name FROM xorbs JOIN repo_xorbs ON xorb = name WHERE chunks = 1",
    )
    assert own == (other, of_grace.segments[0].xorb)

    for repo in (repo_id, other):
        await put_blob(database, repo, NOISE)
    await ingestion.cut_waiting(database)
    links = "SELECT xorb FROM repo_xorbs GROUP BY xorb HAVING count(*) = 2"
    assert len(await rows(database, links)) == 1


async def test_two_tasks_do_not_cut_the_same_contents(
    database: Database, repo_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_blob(database, repo_id, NOISE)
    find = ingestion_store.find_promising_xorbs
    calls = 0

    async def meanwhile(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        await ingestion.cut_waiting(database)
        return await find(*arguments)

    monkeypatch.setattr(ingestion_store, "find_promising_xorbs", meanwhile)
    await ingestion.cut_waiting(database)
    assert (await content_of(database, NOISE)).xet_hash == HASH_OF_NOISE
    assert calls == 1
    # The second one comes back later.
    assert (chunker.CUT,) in await rows(database, "SELECT kind FROM tasks")
