"""Garbage collection: what nothing needs goes in time, and nothing that an image needs."""

import json
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.events import RepoImagesUpdated
from hublet.registry import collection
from hublet.registry.collection import Collected
from outbox_events import published_events
from people import Headers
from registry.stored_images import (
    a_config,
    a_manifest,
    an_index,
    descriptor,
    digest_of,
    store_blob,
    store_image,
    store_manifest,
)
from repositories import a_repo

DAY = timedelta(days=1)


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/tool", type="container")


async def age(database: Database, days: float) -> None:
    """Let everything in the registry be so many days older."""
    micros = int(days * 86_400_000_000)
    async with database.transaction() as conn:
        for table, column in (
            ("registry_blobs", "touched_at"),
            ("registry_manifests", "touched_at"),
            ("registry_tags", "pushed_at"),
            ("registry_uploads", "changed_at"),
        ):
            await conn.execute(f"UPDATE {table} SET {column} = {column} - $1", micros)


async def set_rule(database: Database, repo_id: str, keep: int | None, days: int | None) -> None:
    async with database.transaction() as conn:
        await conn.execute(
            "INSERT INTO registry_retention (repo_id, keep_tags, untagged_days) VALUES ($1, $2, $3)",
            repo_id, keep, days,
        )  # fmt: skip


async def values_of(database: Database, sql: str) -> list[Any]:
    async with database.read() as conn:
        return [row[0] for row in await conn.fetch_all(sql)]


async def tags_of(database: Database) -> list[str]:
    return await values_of(database, "SELECT name FROM registry_tags ORDER BY name")


async def manifests_of(database: Database) -> set[str]:
    return set(await values_of(database, "SELECT digest FROM registry_manifests"))


async def check_totals(database: Database, repo_id: str) -> None:
    """The totals of the repository are those of its files."""
    async with database.read() as conn:
        found = await conn.fetch_one("SELECT size, total_files FROM repos WHERE id = $1", repo_id)
        files = await conn.fetch_one(
            "SELECT coalesce(sum(size), 0), count(*) FROM repo_files WHERE repo_id = $1", repo_id
        )
    assert found is not None
    assert files is not None
    assert (found[0], found[1]) == (int(files[0]), files[1])


async def test_a_blob_that_no_manifest_names_goes_after_a_day(
    database: Database, repo_id: str
) -> None:
    await store_image(database, repo_id, "1")
    lonely = await store_blob(database, repo_id, b"lonely")
    await age(database, 0.9)
    assert await collection.collect(database) == Collected()
    await age(database, 0.2)
    fresh = await store_blob(database, repo_id, b"fresh")

    assert await collection.collect(database) == Collected(blobs=1)

    blobs = await values_of(database, "SELECT digest FROM registry_blobs")
    files = await values_of(database, "SELECT path FROM repo_files ORDER BY path")
    assert (lonely in blobs, fresh in blobs, len(blobs)) == (False, True, 3)
    assert f"blobs/{lonely.replace(':', '/')}" not in files
    assert "manifests/_tags/1" in files
    await check_totals(database, repo_id)


async def test_a_blob_stays_a_file_while_another_image_has_it(
    database: Database, repo_id: str
) -> None:
    await store_image(database, repo_id, "1", image="gpu")
    await store_blob(database, repo_id, b"layer")
    await age(database, 2)

    assert await collection.collect(database) == Collected(blobs=1)

    files = await values_of(database, "SELECT path FROM repo_files")
    assert f"blobs/{digest_of(b'layer').replace(':', '/')}" in files
    await check_totals(database, repo_id)


async def test_without_a_rule_all_manifests_and_tags_stay(database: Database, repo_id: str) -> None:
    await store_image(database, repo_id)
    await store_image(database, repo_id, *map(str, range(5)), layers=[b"x"])
    await age(database, 1000)

    assert await collection.collect(database) == Collected()


async def test_untagged_images_go_with_their_blobs_when_the_rule_says_so(
    database: Database, repo_id: str
) -> None:
    await set_rule(database, repo_id, None, 7)
    await store_image(database, repo_id, layers=[b"old"])
    kept = await store_image(database, repo_id, "1", layers=[b"tagged"])
    await age(database, 6)
    assert await collection.collect(database) == Collected()
    await age(database, 2)

    assert await collection.collect(database) == Collected(manifests=1, blobs=1)

    assert await manifests_of(database) == {kept}
    [event] = await published_events(database, RepoImagesUpdated)
    assert (event["actor_id"], event["updated_images"][0]["tag"]) == (None, None)
    await check_totals(database, repo_id)


async def test_what_an_index_or_a_living_subject_needs_stays(
    database: Database, repo_id: str
) -> None:
    await set_rule(database, repo_id, None, 1)
    config = a_config("RUN a")
    child = await store_image(database, repo_id, config=config)
    index = an_index({"linux/amd64": a_manifest(config, [b"layer"])})
    parent = await store_manifest(database, repo_id, index, "1")
    subject = descriptor(index, "application/vnd.oci.image.index.v1+json")
    about = await store_image(database, repo_id, layers=[b"signature"], subject=subject)
    await age(database, 30)

    assert await collection.collect(database) == Collected()

    async with database.transaction() as conn:
        await conn.execute("DELETE FROM registry_tags")
    assert await collection.collect(database) == Collected(manifests=3, blobs=4)
    assert await manifests_of(database) == set() == {child, parent, about} & set()
    await check_totals(database, repo_id)


async def test_only_the_newest_tags_stay(database: Database, repo_id: str) -> None:
    await set_rule(database, repo_id, 2, None)
    for number in range(4):
        await store_image(database, repo_id, f"v{number}", layers=[b"%d" % number])
        await age(database, 0.001)
    await store_image(database, repo_id, "v0", image="gpu")

    assert await collection.collect(database) == Collected(tags=2)

    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT image, name FROM registry_tags ORDER BY image, name")
    assert [tuple(row) for row in rows] == [("", "v2"), ("", "v3"), ("gpu", "v0")]
    [event] = await published_events(database, RepoImagesUpdated)
    assert [each["tag"] for each in event["updated_images"]] == ["v1", "v0"]
    await check_totals(database, repo_id)


async def test_signatures_stay_with_their_image_and_do_not_count(
    database: Database, repo_id: str
) -> None:
    await set_rule(database, repo_id, 1, None)
    digest = await store_image(database, repo_id, "old")
    await store_image(database, repo_id, f"{digest.replace(':', '-')}.sig", layers=[b"signature"])
    await store_image(database, repo_id, f"sha256-{'0' * 64}.sig", layers=[b"of nothing"])
    await age(database, 0.001)
    await store_image(database, repo_id, "new", layers=[b"new"])

    assert await collection.collect(database) == Collected(tags=2)

    assert await tags_of(database) == ["new", f"{digest.replace(':', '-')}.sig"]


async def test_an_upload_to_which_nothing_came_for_a_day_is_given_up(
    database: Database, repo_id: str
) -> None:
    async with database.transaction() as conn:
        for name, changed in (("old", clock.micros() - 90_000_000_000), ("new", clock.micros())):
            await conn.execute(
                """
                INSERT INTO registry_uploads
                    (id, repo_id, image, user_id, size, created_at, changed_at)
                VALUES ($1, $2, '', 'ada', 5, 0, $3)
                """,
                name, repo_id, changed,
            )  # fmt: skip
            await conn.execute(
                "INSERT INTO registry_upload_parts VALUES ($1, 0, 5, $2)", name, "0" * 64
            )

    assert await collection.collect(database) == Collected(uploads=1)

    assert await values_of(database, "SELECT upload_id FROM registry_upload_parts") == ["new"]


async def test_what_is_touched_between_the_look_and_the_removal_stays(
    database: Database, repo_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store_blob(database, repo_id, b"layer")
    await age(database, 2)
    lock = collection.store.lock_repo

    async def touch_first(conn: Any, repo: str) -> bool:
        await conn.execute("UPDATE registry_blobs SET touched_at = $1", clock.micros())
        return await lock(conn, repo)

    monkeypatch.setattr(collection.store, "lock_repo", touch_first)

    assert await collection.collect(database) == Collected()


async def test_a_collection_is_scheduled_once_an_hour(database: Database) -> None:
    await collection.collect_hourly(database, {})
    await collection.collect_hourly(database, {})

    bodies = await values_of(database, "SELECT body FROM tasks WHERE kind = 'registry.collect'")
    assert [json.loads(body) for body in bodies] == [{}]
