"""Pruning beside uploads: whoever comes first, what was acknowledged is there.

A pause gives the other side the chance to get in between; nothing is asserted of how long it takes.
On SQLite a transaction waits for the other, on PostgreSQL both run.
"""

import asyncio
import os
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.repos import blobs_store, pruning, pruning_store
from hublet.repos.commits import service as commits
from hublet.repos.push import apply
from hublet.storage import contents, store
from hublet.storage.object_store import LocalStore, ObjectKey, blob_key, xorb_key
from hublet.storage.records import Blob
from people import Headers
from repos import commits as commit_bodies
from repos.content import pointer, put_blob, sha256
from repos.lfs import upload_href
from repos.pushes import MAIN, a_pusher
from repos.test_pruning import (
    CONTENT,
    age_blob,
    age_registration,
    age_xorb,
    change,
    digests_of,
    is_there,
    values_of,
)
from repos.xorbs import object_store, put_cut_blob, put_xorb_object, put_xorb_row
from repositories import a_repo

PAUSE = 0.05


async def read(database: Database, digest: str) -> bytes:
    async with database.read() as conn:
        content = (await store.find_contents(conn, [digest]))[digest]
    return b"".join(contents.pieces(object_store(database), content, 0, content.size))


async def old_blob(database: Database) -> None:
    await put_blob(database, None, CONTENT)
    await age_blob(database, sha256(CONTENT))


async def old_xorb(database: Database) -> str:
    xorb, _ = put_xorb_object(database, [CONTENT])
    async with database.transaction() as conn:
        await put_xorb_row(conn, None, xorb)
    await age_xorb(database, xorb.name)
    return xorb.name


async def upload_beside_deletion(
    database: Database, monkeypatch: pytest.MonkeyPatch, upload: Any
) -> None:
    """Prune, with an upload between the commit that removes a row and the end of its object."""
    delete = LocalStore.delete
    loop = asyncio.get_running_loop()

    def upload_first(self: LocalStore, keys: Iterable[ObjectKey], **more: Any) -> None:
        keys = list(keys)
        if keys:
            monkeypatch.setattr(LocalStore, "delete", delete)
            asyncio.run_coroutine_threadsafe(upload(), loop).result()
        delete(self, keys, **more)

    monkeypatch.setattr(LocalStore, "delete", upload_first)
    await pruning.prune(database)


async def test_a_blob_that_arrives_when_its_row_has_gone_stays(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await old_blob(database)

    await upload_beside_deletion(
        database, monkeypatch, lambda: put_blob(database, repo_id, CONTENT)
    )

    assert await read(database, sha256(CONTENT)) == CONTENT


async def test_a_xorb_that_arrives_when_its_row_has_gone_stays(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await old_xorb(database)

    await upload_beside_deletion(
        database, monkeypatch, lambda: put_cut_blob(database, repo_id, [CONTENT])
    )

    assert await read(database, sha256(CONTENT)) == CONTENT


async def test_an_object_that_is_replaced_while_it_is_put_aside_comes_back(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await old_blob(database)
    objects = LocalStore(database.hub.settings.database.data_dir)
    path = objects.local_path(blob_key(sha256(CONTENT)))
    rename = type(path).rename

    def upload_first(self: Any, target: Any) -> Any:
        os.utime(path)
        return rename(self, target)

    monkeypatch.setattr(type(path), "rename", upload_first)
    objects.delete([blob_key(sha256(CONTENT))], before=clock.now() - timedelta(days=1))

    assert path.read_bytes() == CONTENT
    assert list(objects.incoming.iterdir()) == []


async def test_an_object_that_a_killed_pruning_put_aside_comes_back(database: Database) -> None:
    await put_blob(database, None, CONTENT)
    objects = LocalStore(database.hub.settings.database.data_dir)
    path = objects.local_path(blob_key(sha256(CONTENT)))
    path.rename(objects.incoming / f"blobs.{sha256(CONTENT)}.0123.leaving")

    await pruning.prune(database)

    assert path.read_bytes() == CONTENT
    assert list(objects.incoming.iterdir()) == []


async def hold(database: Database, step: Any) -> tuple[asyncio.Task[None], asyncio.Event]:
    """Begin a transaction with this step; it is committed once the event is set."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def run() -> None:
        async with database.transaction() as conn:
            await step(conn)
            begun.set()
            await go_on.wait()

    task = asyncio.create_task(run())
    await begun.wait()
    return task, go_on


async def prune_beside(database: Database, step: Any) -> None:
    """Prune while a transaction has done this and is not committed."""
    task, go_on = await hold(database, step)
    pruned = asyncio.create_task(pruning.prune(database))
    await asyncio.sleep(PAUSE)
    go_on.set()
    await asyncio.gather(task, pruned)


async def test_a_blob_that_gets_its_first_link_meanwhile_stays(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await old_blob(database)
    blob = Blob(sha256=sha256(CONTENT), size=len(CONTENT))

    await prune_beside(database, lambda conn: blobs_store.link(conn, repo_id, [blob]))

    assert await read(database, sha256(CONTENT)) == CONTENT


async def test_a_xorb_that_gets_its_first_link_meanwhile_stays(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    xorb = await old_xorb(database)

    async def link(conn: Connection) -> None:
        await conn.execute("INSERT INTO repo_xorbs (repo_id, xorb) VALUES ($1, $2)", repo_id, xorb)

    await prune_beside(database, link)

    assert is_there(database, xorb_key(xorb))
    assert await digests_of(database, "xorbs", "name") == {xorb}


async def test_an_upload_that_a_commit_takes_meanwhile_stays(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await put_cut_blob(database, repo_id, [CONTENT], is_used=False)
    await age_registration(database, sha256(CONTENT), days=8)

    await prune_beside(
        database, lambda conn: blobs_store.set_used(conn, repo_id, [sha256(CONTENT)])
    )

    assert await digests_of(database, "repo_blobs") == {sha256(CONTENT)}


async def test_a_link_that_a_shard_renews_meanwhile_stays(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    xorb = await old_xorb(database)
    await change(
        database, "INSERT INTO repo_xorbs (repo_id, xorb, unused_since) VALUES ($1, $2, 1)",
        repo_id, xorb,
    )  # fmt: skip

    async def renew(conn: Connection) -> None:
        await conn.execute("UPDATE repo_xorbs SET unused_since = NULL WHERE xorb = $1", xorb)

    await prune_beside(database, renew)

    assert await digests_of(database, "repo_xorbs", "xorb") == {xorb}


async def test_an_upload_waits_for_the_pruning_of_its_blob(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await old_blob(database)

    async def remove(conn: Connection) -> None:
        assert await pruning_store.remove_blobs(conn, before=clock.micros(), limit=5)

    task, go_on = await hold(database, remove)
    upload = asyncio.create_task(put_blob(database, repo_id, CONTENT))
    await asyncio.sleep(PAUSE)
    go_on.set()
    await asyncio.gather(task, upload)
    object_store(database).delete(
        [blob_key(sha256(CONTENT))], before=clock.now() - timedelta(days=1)
    )

    assert await read(database, sha256(CONTENT)) == CONTENT


async def test_an_upload_waits_for_the_pruning_of_its_xorb_and_of_its_cut_blob(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    _, xorb = await put_cut_blob(database, None, [CONTENT])
    await age_blob(database, sha256(CONTENT))
    await age_xorb(database, xorb.name)

    async def remove(conn: Connection) -> None:
        assert await pruning_store.remove_blobs(conn, before=clock.micros(), limit=5)
        assert await pruning_store.remove_xorbs(conn, before=clock.micros(), limit=5)

    task, go_on = await hold(database, remove)
    upload = asyncio.create_task(put_cut_blob(database, repo_id, [CONTENT]))
    await asyncio.sleep(PAUSE)
    go_on.set()
    await asyncio.gather(task, upload)
    object_store(database).delete([xorb_key(xorb.name)], before=clock.now() - timedelta(days=1))

    assert await read(database, sha256(CONTENT)) == CONTENT


async def test_many_uploads_beside_many_prunings_lose_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    chunks = [b"chunk %d" % number for number in range(4)]

    async def come_and_go(chunk: bytes) -> None:
        for _ in range(5):
            blob, xorb = await put_cut_blob(database, None, [chunk])
            await age_xorb(database, xorb.name)
            await age_blob(database, blob.sha256)
            await put_cut_blob(database, repo_id, [chunk])
            assert await read(database, blob.sha256) == chunk
            async with database.transaction() as conn:
                await blobs_store.unlink(conn, repo_id, [blob.sha256])
                await conn.execute("DELETE FROM repo_xorbs WHERE xorb = $1", xorb.name)

    async def prune_on(uploads: "asyncio.Future[Any]") -> None:
        while not uploads.done():
            await pruning.prune(database)

    uploads = asyncio.gather(*map(come_and_go, chunks))
    await asyncio.gather(uploads, prune_on(uploads), prune_on(uploads))


async def uploaded(client: httpx2.AsyncClient, headers: Headers, content: bytes) -> None:
    href = await upload_href(client, headers, content)
    assert (await client.put(href, content=content)).status_code == 200


async def test_a_commit_takes_an_upload(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo = await commit_bodies.a_repo(client, database, ada)
    await uploaded(client, ada, CONTENT)
    assert await values_of(database, "SELECT is_used FROM repo_blobs") == [False]

    await repo.commit(ada, commit_bodies.lfs_file("a.bin", sha256(CONTENT), size=len(CONTENT)))

    assert await values_of(database, "SELECT is_used FROM repo_blobs") == [True]


async def test_a_commit_of_content_that_was_just_pruned_is_refused(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repo = await commit_bodies.a_repo(client, database, ada)
    await uploaded(client, ada, CONTENT)
    before = await repo.state()
    write_pointers = commits._write_pointers  # noqa: SLF001 - the moment after it is the point

    async def prune_after(*arguments: Any) -> None:
        await write_pointers(*arguments)
        await age_registration(database, sha256(CONTENT), days=8)
        await pruning.prune(database)

    monkeypatch.setattr(commits, "_write_pointers", prune_after)
    line = commit_bodies.lfs_file("a.bin", sha256(CONTENT), size=len(CONTENT))
    refused = await repo.send(ada, commit_bodies.ndjson(commit_bodies.header(), line))

    assert refused.status_code == 400
    assert refused.json()["error"] == (
        f"a.bin: there is no content {sha256(CONTENT)} in this repository; "
        "upload it through Xet or LFS first."
    )
    assert await repo.state() == before


async def test_a_push_takes_an_upload_unless_it_was_just_pruned(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pusher = await a_pusher(client, database, ada, tmp_path)
    new = pusher.clone.commit({"a.bin": pointer(CONTENT)}, pusher.head)
    accept_objects = apply.accept_objects

    async def prune_after(*arguments: Any, **more: Any) -> Any:
        accepted = await accept_objects(*arguments, **more)
        await age_registration(database, sha256(CONTENT), days=8)
        await pruning.prune(database)
        return accepted

    await uploaded(client, ada, CONTENT)
    with monkeypatch.context() as patch:
        patch.setattr(apply, "accept_objects", prune_after)
        refused = await pusher.push_main(new)
    await uploaded(client, ada, CONTENT)
    taken = await pusher.push_main(new)

    refusal = f"ng {MAIN} the content of a.bin is missing; send it with `git lfs push` first"
    assert (refused, taken) == (refusal, f"ok {MAIN}")
    assert await values_of(database, "SELECT is_used FROM repo_blobs") == [True]
