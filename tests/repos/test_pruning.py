"""Pruning of the storage: what nothing needs goes in time, and nothing that an upload needs."""

import os
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.repos import blobs_store, pruning
from hublet.repos.pruning import Pruned
from hublet.storage import contents, epochs
from hublet.storage.object_store import ObjectKey, blob_key, open_store, part_key, xorb_key
from hublet.storage.xorbs import footer_size
from people import Headers
from repos.content import put_blob, sha256
from repos.xorbs import object_store, put_cut_blob, put_xorb_object, put_xorb_row
from repositories import a_repo
from workers import drain

CONTENT = b"0123456789"
YEARS_AGO = 1_000_000_000
DAY = 86_400_000_000


def blobs_folder(database: Database) -> Path:
    return database.hub.settings.database.data_dir / "blobs"


def grow_old(path: Path | None) -> None:
    assert path is not None
    os.utime(path, (YEARS_AGO, YEARS_AGO))


def is_there(database: Database, key: ObjectKey) -> bool:
    return object_store(database).stat(key) is not None


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


async def change(database: Database, sql: str, *values: object) -> None:
    async with database.transaction() as conn:
        await conn.execute(sql, *values)


async def age_blob(database: Database, digest: str, *, days: int = 2) -> None:
    """Make a blob some days old, in the database and, where it is whole, in the store."""
    if is_there(database, blob_key(digest)):
        grow_old(object_store(database).local_path(blob_key(digest)))
    created = clock.micros() - days * DAY
    await change(database, "UPDATE blobs SET created_at = $1 WHERE sha256 = $2", created, digest)


async def age_xorb(database: Database, digest: str) -> None:
    grow_old(object_store(database).local_path(xorb_key(digest)))
    created = clock.micros() - 2 * DAY
    await change(database, "UPDATE xorbs SET created_at = $1 WHERE name = $2", created, digest)


async def age_registration(database: Database, digest: str, *, days: int) -> None:
    pushed = clock.micros() - days * DAY
    await change(database, "UPDATE repo_blobs SET pushed_at = $1 WHERE sha256 = $2", pushed, digest)


async def values_of(database: Database, sql: str) -> list[object]:
    async with database.read() as conn:
        return [row[0] for row in await conn.fetch_all(sql)]


async def digests_of(
    database: Database, table: str = "blobs", column: str = "sha256"
) -> set[object]:
    return set(await values_of(database, f"SELECT {column} FROM {table}"))


async def add_file(database: Database, repo_id: str, digest: str) -> None:
    await change(
        database,
        """
        INSERT INTO repo_files (repo_id, path, sha256, size, modified_at, uploaded_at)
        VALUES ($1, 'a', $2, 4, 0, 0)
        """,
        repo_id, digest,
    )  # fmt: skip


async def test_blobs_that_nothing_points_to_go_after_a_day(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    for content, owner in ((b"linked", repo_id), (b"old", None), (b"new", None)):
        await put_blob(database, owner, content)
    await age_blob(database, sha256(b"linked"))
    await age_blob(database, sha256(b"old"))

    pruned = await pruning.prune(database)

    left = sorted([sha256(b"linked"), sha256(b"new")])
    assert names_in(blobs_folder(database)) == left
    assert await digests_of(database) == set(left)
    assert pruned == Pruned(blobs=1, freed_bytes=len(b"old"))


async def test_what_buckets_and_attachments_show_stays(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    box = await a_repo(client, ada, "ada/box", type="bucket")
    await put_blob(database, None, b"file")
    await put_blob(database, None, b"picture")
    await add_file(database, box, sha256(b"file"))
    await change(
        database,
        """
        INSERT INTO attachments (name, user_id, sha256, size, media_type, created_at)
        VALUES ('x', 'y', $1, 7, 'image/png', 0)
        """,
        sha256(b"picture"),
    )
    await age_blob(database, sha256(b"file"))
    await age_blob(database, sha256(b"picture"))

    await pruning.prune_blobs(database)

    assert names_in(blobs_folder(database)) == sorted([sha256(b"file"), sha256(b"picture")])


async def test_a_deleted_file_is_swept_with_its_last_repository(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await put_blob(database, repo_id, CONTENT)
    blob, xorb = await put_cut_blob(database, repo_id, [b"one", b"two"])
    for digest in (sha256(CONTENT), blob.sha256):
        await age_blob(database, digest)
    await age_xorb(database, xorb.name)
    await client.request("DELETE", "/api/repos/delete", headers=ada, json={"name": "engine"})

    pruned = await pruning.prune(database)

    assert names_in(blobs_folder(database)) == []
    assert not is_there(database, xorb_key(xorb.name))
    assert await digests_of(database, "xorbs", "name") == set()
    freed = len(CONTENT) + xorb.stored_size + footer_size(2)
    assert pruned == Pruned(blobs=2, xorbs=1, freed_bytes=freed)


async def test_objects_that_the_database_does_not_know_go_after_a_day(database: Database) -> None:
    objects = object_store(database)
    for content in (b"old", b"new"):
        with objects.new_spool() as spool:
            spool.write(content)
            objects.put(blob_key(sha256(content)), spool)
    old_xorb, _ = put_xorb_object(database, [b"old"])
    new_xorb, _ = put_xorb_object(database, [b"new"])
    grow_old(objects.local_path(blob_key(sha256(b"old"))))
    grow_old(objects.local_path(xorb_key(old_xorb.name)))

    pruned = await pruning.prune(database)

    assert names_in(blobs_folder(database)) == [sha256(b"new")]
    assert [each.key for each in objects.list("xorbs")] == [xorb_key(new_xorb.name)]
    assert pruned.orphans == 2


async def test_what_interrupted_uploads_left_goes_after_a_day(database: Database) -> None:
    objects = open_store(database.hub.settings)
    spools = [objects.new_spool(), objects.new_spool()]
    for name in ("old", "new"):
        with objects.new_spool() as part:
            part.write(b"12")
            objects.put(part_key(name), part, durable=False)
    for spool in spools:
        spool.write(b"123")
        spool.flush()
    for path in (spools[0].path, objects.local_path(part_key("old"))):
        grow_old(path)

    pruned = await pruning.prune(database)

    assert [spool.path.exists() for spool in spools] == [False, True]
    assert [each.key for each in objects.list("parts")] == [part_key("new")]
    spools[1].close()
    assert pruned == Pruned(interrupted_bytes=5, freed_bytes=5)


async def test_the_whole_copy_of_a_cut_blob_goes_after_a_day(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    for chunks in ([b"old"], [b"new"]):
        await put_cut_blob(database, repo_id, chunks)
        # The same bytes arrive whole: the blob stays cut.
        await put_blob(database, repo_id, chunks[0])
    assert await values_of(database, "SELECT count(*) FROM blobs WHERE is_whole = TRUE") == [0]
    object_of_old = object_store(database).local_path(blob_key(sha256(b"old")))
    grow_old(object_of_old)

    # Somebody may have looked it up just before it was cut.
    await pruning.prune(database)
    assert object_of_old.exists()

    await age_blob(database, sha256(b"old"))
    await pruning.prune(database)

    assert names_in(blobs_folder(database)) == [sha256(b"new")]
    assert await digests_of(database) == {sha256(b"old"), sha256(b"new")}


async def test_uploads_that_nothing_took_go_after_seven_days(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    bucket_id = await a_repo(client, ada, "ada/box", type="bucket")
    for content in (b"old", b"taken", b"young"):
        await put_cut_blob(database, repo_id, [content], is_used=content == b"taken")
        await age_registration(database, sha256(content), days=6 if content == b"young" else 8)
    await put_cut_blob(database, bucket_id, [b"shown"], is_used=False)
    await add_file(database, bucket_id, sha256(b"shown"))
    await age_registration(database, sha256(b"shown"), days=8)

    pruned = await pruning.prune(database)

    left = {sha256(b"taken"), sha256(b"young"), sha256(b"shown")}
    assert await digests_of(database, "repo_blobs") == left
    assert pruned.registrations == 1


async def test_an_upload_again_begins_the_seven_days_anew(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    for _ in range(2):
        await put_cut_blob(database, repo_id, [CONTENT], is_used=False)
        await age_registration(database, sha256(CONTENT), days=6)
    await put_cut_blob(database, repo_id, [CONTENT], is_used=False)

    clock.move(timedelta(days=6))
    await pruning.prune(database)

    assert await digests_of(database, "repo_blobs") == {sha256(CONTENT)}


async def linked_xorb(
    client: httpx2.AsyncClient, database: Database, headers: Headers
) -> tuple[str, str]:
    """Return a repository and a xorb that nothing of it uses any more, seen by pruning."""
    repo_id = await a_repo(client, headers, "ada/engine")
    blob, xorb = await put_cut_blob(database, repo_id, [CONTENT])
    await change(
        database,
        "INSERT INTO repo_chunks (repo_id, chunk, xorb, next_xorbs) VALUES ($1, 'c', $2, '[]')",
        repo_id,
        xorb.name,
    )
    async with database.transaction() as conn:
        await blobs_store.unlink(conn, repo_id, [blob.sha256])
    await age_blob(database, blob.sha256)
    await age_xorb(database, xorb.name)
    await pruning.prune(database)
    return repo_id, xorb.name


async def test_a_xorb_that_a_client_may_know_stays_for_22_days(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    _, xorb = await linked_xorb(client, database, ada)

    clock.move(timedelta(days=21, hours=23))
    await pruning.prune(database)
    assert is_there(database, xorb_key(xorb))
    assert await digests_of(database, "repo_chunks", "chunk") == {"c"}

    clock.move(timedelta(hours=2))
    pruned = await pruning.prune(database)

    assert (pruned.links, pruned.xorbs) == (1, 1)
    assert not is_there(database, xorb_key(xorb))
    assert await digests_of(database, "repo_chunks", "chunk") == set()


async def test_a_xorb_that_is_used_again_is_not_unused_any_more(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id, xorb = await linked_xorb(client, database, ada)
    clock.move(timedelta(days=21))
    await put_cut_blob(database, repo_id, [CONTENT])

    clock.move(timedelta(days=2))
    await pruning.prune(database)

    assert await values_of(database, "SELECT unused_since FROM repo_xorbs") == [None]
    assert is_there(database, xorb_key(xorb))


async def test_a_file_of_a_bucket_uses_a_xorb(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    box = await a_repo(client, ada, "ada/box", type="bucket")
    blob, _ = await put_cut_blob(database, box, [CONTENT], is_used=False)
    await add_file(database, box, blob.sha256)
    async with database.transaction() as conn:
        await blobs_store.unlink(conn, box, [blob.sha256])

    await pruning.prune(database)

    assert await values_of(database, "SELECT unused_since FROM repo_xorbs") == [None]


async def test_content_of_another_repository_does_not_keep_a_link(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    """But it keeps the xorb."""
    _, xorb = await linked_xorb(client, database, ada)
    other_id = await a_repo(client, ada, "ada/other")
    clock.move(timedelta(days=23))
    await put_cut_blob(database, other_id, [CONTENT])
    await age_xorb(database, xorb)

    pruned = await pruning.prune(database)

    assert (pruned.links, pruned.xorbs) == (1, 0)
    assert await digests_of(database, "repo_xorbs", "repo_id") == {other_id}
    assert is_there(database, xorb_key(xorb))


async def layouts_of(database: Database, repo_id: str) -> list[str]:
    async with database.read() as conn:
        content = (await blobs_store.find_contents(conn, repo_id, [sha256(CONTENT)]))[
            sha256(CONTENT)
        ]
    return [segment.xorb for segment in content.segments]


async def test_what_only_a_deleted_repository_saw_goes_and_what_others_see_stays(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    engine = await a_repo(client, ada, "ada/engine")
    other = await a_repo(client, ada, "ada/other")
    _, one = await put_cut_blob(database, engine, [CONTENT[:1], CONTENT[1:]])
    _, two = await put_cut_blob(database, other, [CONTENT])
    for xorb in (one, two):
        await age_xorb(database, xorb.name)
    assert await layouts_of(database, engine) == [one.name]
    await client.request(
        "DELETE", "/api/repos/delete", headers=ada, json={"name": "ada/engine", "type": "model"}
    )

    await pruning.prune(database)

    assert await digests_of(database, "xorbs", "name") == {two.name}
    assert await layouts_of(database, other) == [two.name]


async def test_the_last_layout_stays_while_anything_needs_the_content(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    """A repository that has not cut it yet reads it from how another one packed it."""
    engine = await a_repo(client, ada, "ada/engine")
    other = await a_repo(client, ada, "ada/other")
    blob, xorb = await put_cut_blob(database, engine, [CONTENT])
    await put_blob(database, other, CONTENT)
    await age_xorb(database, xorb.name)
    await age_blob(database, blob.sha256)
    await client.request(
        "DELETE", "/api/repos/delete", headers=ada, json={"name": "ada/engine", "type": "model"}
    )

    await pruning.prune(database)

    assert not is_there(database, blob_key(blob.sha256))
    async with database.read() as conn:
        content = (await blobs_store.find_contents(conn, other, [blob.sha256]))[blob.sha256]
    read = contents.pieces(object_store(database), content, 0, content.size)
    assert (content.xet_hash, b"".join(read)) == (None, CONTENT)


async def test_a_layout_that_nothing_shows_is_forgotten_after_a_day(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await put_cut_blob(database, repo_id, [CONTENT])
    async with database.transaction() as conn:
        await blobs_store.unlink(conn, repo_id, [sha256(CONTENT)])

    await pruning.prune(database)
    assert await digests_of(database, "repo_layouts") == {sha256(CONTENT)}
    clock.move(timedelta(days=1, seconds=1))
    await pruning.prune(database)
    assert await digests_of(database, "repo_layouts") == set()


async def test_with_a_new_epoch_unused_xorbs_go_at_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    _, xorb = await linked_xorb(client, database, ada)
    async with database.transaction() as conn:
        assert await epochs.begin_epoch(conn) == 1
        assert await epochs.begin_epoch(conn) == 2

    await pruning.prune(database)

    assert not is_there(database, xorb_key(xorb))


async def test_what_becomes_unused_in_the_new_epoch_waits_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    async with database.transaction() as conn:
        await epochs.begin_epoch(conn)
    _, xorb = await linked_xorb(client, database, ada)

    await pruning.prune(database)

    assert is_there(database, xorb_key(xorb))


async def test_a_xorb_that_just_arrived_outlives_a_new_epoch(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    xorb, _ = put_xorb_object(database, [CONTENT])
    async with database.transaction() as conn:
        await put_xorb_row(conn, repo_id, xorb)
    await pruning.prune(database)
    async with database.transaction() as conn:
        await epochs.begin_epoch(conn)

    await pruning.prune(database)

    # Its upload has yet to send the shard.
    assert await digests_of(database, "repo_xorbs", "xorb") == {xorb.name}


async def test_a_preview_counts_and_changes_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id, xorb = await linked_xorb(client, database, ada)
    await put_blob(database, None, b"old")
    await age_blob(database, sha256(b"old"))
    blob, _ = await put_cut_blob(database, repo_id, [b"never taken"], is_used=False)
    await age_registration(database, blob.sha256, days=8)
    await age_blob(database, blob.sha256)
    async with database.transaction() as conn:
        await epochs.begin_epoch(conn)

    previewed = await pruning.preview(database)

    assert is_there(database, blob_key(sha256(b"old")))
    assert previewed == await pruning.prune(database)
    assert (previewed.registrations, previewed.blobs) == (1, 2)
    assert (previewed.links, previewed.xorbs) == (1, 1)
    assert not is_there(database, xorb_key(xorb))


async def test_the_storage_is_pruned_every_day(database: Database) -> None:
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


async def test_a_batch_is_not_the_end(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pruning, "_BATCH", 2)
    repo_id = await a_repo(client, ada, "ada/engine")
    for number in range(5):
        content = b"%d" % number
        await put_blob(database, None, b"whole " + content)
        await age_blob(database, sha256(b"whole " + content))
        blob, xorb = await put_cut_blob(database, repo_id, [content], is_used=False)
        await age_registration(database, blob.sha256, days=8)
        await age_blob(database, blob.sha256)
        await age_xorb(database, xorb.name)

    first = await pruning.prune(database)
    clock.move(timedelta(days=23))
    second = await pruning.prune(database)

    assert (first.registrations, first.blobs, first.links, first.xorbs) == (5, 10, 0, 0)
    assert (second.registrations, second.blobs, second.links, second.xorbs) == (0, 0, 5, 5)
    assert names_in(blobs_folder(database).parent / "xorbs") == []
