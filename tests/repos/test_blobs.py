"""Blobs on the disk: kept, and cleared away when nobody needs them."""

import os
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.repos import blobs_store, pruning
from hublet.storage import contents
from hublet.storage.object_store import open_store, part_key
from people import Headers
from repos.content import object_path, put_blob, sha256
from repositories import a_repo
from workers import drain

CONTENT = b"0123456789"
YEARS_AGO = 1_000_000_000


def data_dir(database: Database) -> Path:
    return database.hub.settings.database.data_dir


def grow_old(path: Path) -> None:
    os.utime(path, (YEARS_AGO, YEARS_AGO))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


async def age(database: Database, content: bytes) -> None:
    """Make a blob two days old, in the database and on the disk."""
    grow_old(object_path(database, content))
    async with database.transaction() as conn:
        before = clock.micros() - 2 * 86_400_000_000
        await conn.execute(
            "UPDATE blobs SET created_at = $1 WHERE sha256 = $2", before, sha256(content)
        )


async def test_blobs_that_nothing_points_to_go_after_a_day(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    for content, owner in ((b"linked", repo_id), (b"old", None), (b"new", None)):
        await put_blob(database, owner, content)
    await age(database, b"linked")
    await age(database, b"old")

    await pruning.prune_blobs(database)

    left = sorted([sha256(b"linked"), sha256(b"new")])
    assert names_in(data_dir(database) / "blobs") == left
    async with database.read() as conn:
        assert await blobs_store.find_known(
            conn, [sha256(content) for content in (b"linked", b"old", b"new")]
        ) == set(left)


async def test_what_buckets_and_attachments_show_stays(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    box = await a_repo(client, ada, "ada/box", type="bucket")
    await put_blob(database, None, b"file")
    await put_blob(database, None, b"picture")
    async with database.transaction() as conn:
        await conn.execute(
            """
            INSERT INTO repo_files (repo_id, path, sha256, size, modified_at, uploaded_at)
            VALUES ($1, 'a', $2, 4, 0, 0)
            """,
            box, sha256(b"file"),
        )  # fmt: skip
        await conn.execute(
            """
            INSERT INTO attachments (name, user_id, sha256, size, media_type, created_at)
            VALUES ('x', 'y', $1, 7, 'image/png', 0)
            """,
            sha256(b"picture"),
        )
    await age(database, b"file")
    await age(database, b"picture")

    await pruning.prune_blobs(database)

    assert names_in(data_dir(database) / "blobs") == sorted([sha256(b"file"), sha256(b"picture")])


async def test_a_deleted_file_is_swept_with_its_last_repository(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await put_blob(database, repo_id, CONTENT)
    await age(database, CONTENT)
    await client.request("DELETE", "/api/repos/delete", headers=ada, json={"name": "engine"})

    await pruning.prune_blobs(database)

    assert names_in(data_dir(database) / "blobs") == []


async def test_files_that_the_database_does_not_know_go_after_a_day(database: Database) -> None:
    storage = open_store(database.hub.settings)
    for content in (b"old", b"new"):
        with storage.new_spool() as spool:
            spool.write(content)
            contents.put_blob(storage, spool)
    grow_old(object_path(database, b"old"))

    await pruning.prune_blobs(database)

    assert names_in(data_dir(database) / "blobs") == [sha256(b"new")]


async def test_what_interrupted_uploads_left_goes_after_a_day(database: Database) -> None:
    storage = open_store(database.hub.settings)
    spools = [storage.new_spool(), storage.new_spool()]
    for name in ("old", "new"):
        with storage.new_spool() as part:
            storage.put(part_key(name), part, durable=False)
    for path in (spools[0].path, storage.local_path(part_key("old"))):
        assert path is not None
        grow_old(path)

    await pruning.prune_blobs(database)

    assert [spool.path.exists() for spool in spools] == [False, True]
    assert [each.key for each in storage.list("parts")] == [part_key("new")]
    spools[1].close()


async def test_bytes_that_arrive_again_while_they_are_swept_stay(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_blob(database, None, CONTENT)
    await age(database, CONTENT)
    remove, storage = pruning.remove_blobs, open_store(database.hub.settings)

    def upload_first(*arguments: object, **more: object) -> None:
        with storage.new_spool() as spool:
            spool.write(CONTENT)
            contents.put_blob(storage, spool)
        remove(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(pruning, "remove_blobs", upload_first)

    await pruning.prune_blobs(database)

    assert object_path(database, CONTENT).read_bytes() == CONTENT
    assert names_in(data_dir(database) / "blobs") == [sha256(CONTENT)]


async def test_the_folder_is_swept_every_day(database: Database) -> None:
    async with database.transaction() as conn:
        await pruning.schedule_blob_pruning(conn)
        await pruning.schedule_blob_pruning(conn)

    await drain(database)

    assert await planned(database) == 1
    clock.move(timedelta(days=1, seconds=1))
    await drain(database)
    assert await planned(database) == 1


async def planned(database: Database) -> int:
    """How many sweeps wait for their day."""
    async with database.read() as conn:
        count: int = await conn.fetch_value(
            "SELECT count(*) FROM tasks WHERE kind = $1 AND due_at > $2",
            pruning.PRUNE_BLOBS,
            clock.micros(),
        )
        return count


async def test_a_batch_is_not_the_end(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "_BLOB_BATCH", 2)
    for number in range(5):
        await put_blob(database, None, b"%d" % number)
        await age(database, b"%d" % number)

    await pruning.prune_blobs(database)

    assert names_in(data_dir(database) / "blobs") == []
