"""Blobs on the disk: spooled, kept, and cleared away when nobody needs them."""

import os
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.repos import blobs_store, pruning
from hublet.repos.blobs import Spool, blob_path, incoming_folder, parts_folder
from hublet.repos.records import Blob
from people import Headers
from repos.content import put_blob, sha256
from repos.git_objects import git_sha1
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
    grow_old(blob_path(data_dir(database), sha256(content)))
    async with database.transaction() as conn:
        before = clock.micros() - 2 * 86_400_000_000
        await conn.execute(
            "UPDATE blobs SET created_at = $1 WHERE sha256 = $2", before, sha256(content)
        )


def test_a_spool_is_kept_under_its_digest(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.write(CONTENT[:4])
        spool.write(CONTENT[4:])
        git_name = spool.git_sha1()
        blob = spool.store()

    assert blob == Blob(sha256=sha256(CONTENT), size=10)
    assert git_name == git_sha1(CONTENT)
    assert blob_path(tmp_path, blob.sha256).read_bytes() == CONTENT
    assert names_in(tmp_path) == [blob.sha256]


def test_with_the_size_known_gits_name_is_found_on_the_way(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(CONTENT)
    with Spool(tmp_path, size=20) as spool:
        spool.write(CONTENT)
        spool.write_file(source)
        blob = spool.store()

    assert blob == Blob(sha256=sha256(CONTENT * 2), size=20, git_sha1=git_sha1(CONTENT * 2))


def test_what_is_not_kept_vanishes(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.write(CONTENT)

    assert names_in(tmp_path) == []


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
    for content in (b"old", b"new"):
        with Spool(data_dir(database)) as spool:
            spool.write(content)
            spool.store()
    grow_old(blob_path(data_dir(database), sha256(b"old")))

    await pruning.prune_blobs(database)

    assert names_in(data_dir(database) / "blobs") == [sha256(b"new")]


async def test_what_interrupted_uploads_left_goes_after_a_day(database: Database) -> None:
    incoming, parts = incoming_folder(data_dir(database)), parts_folder(data_dir(database))
    for upload in ("old", "new"):
        (parts / upload).mkdir(parents=True)
        (parts / upload / "1-x").write_bytes(b"")
    incoming.mkdir()
    for name in ("old.spool", "new.spool"):
        (incoming / name).write_bytes(b"")
    for path in (incoming / "old.spool", parts / "old"):
        grow_old(path)

    await pruning.prune_blobs(database)

    assert sorted(path.name for path in incoming.iterdir()) == ["new.spool"]
    assert sorted(path.name for path in parts.iterdir()) == ["new"]


async def test_bytes_that_arrive_again_while_they_are_swept_stay(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_blob(database, None, CONTENT)
    await age(database, CONTENT)
    remove = pruning.remove_blobs

    def upload_first(*arguments: object, **more: object) -> None:
        with Spool(data_dir(database)) as spool:
            spool.write(CONTENT)
            spool.store()
        remove(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(pruning, "remove_blobs", upload_first)

    await pruning.prune_blobs(database)

    assert blob_path(data_dir(database), sha256(CONTENT)).read_bytes() == CONTENT
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
