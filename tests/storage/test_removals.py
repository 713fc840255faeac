"""Removal of objects from a bucket beside uploads: what was acknowledged is there."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from hublet.core import clock
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.repos import pruning
from hublet.storage import contents, store
from hublet.storage.errors import ObjectLeaving
from hublet.storage.object_store import blob_key, open_store
from hublet.storage.removals import remove_objects
from hublet.storage.s3_store import S3Store
from repos.content import put_blob, sha256
from repos.xorbs import put_cut_blob

pytestmark = pytest.mark.full

CONTENT = b"what nothing used for days"
KEY = blob_key(sha256(CONTENT))


@pytest.fixture
def settings(settings: Settings, bucket_url: str) -> Settings:
    return replace(settings, storage=replace(settings.storage, url=bucket_url))


async def remove(database: Database, *, before: datetime | None = None) -> None:
    objects = open_store(database.hub.settings)
    tomorrow = clock.now() + timedelta(days=1)
    await remove_objects(database, objects, [KEY], before=before or tomorrow)


def upload_within(
    monkeypatch: pytest.MonkeyPatch, name: str, upload: Any, refusals: list[ObjectLeaving]
) -> None:
    """Upload between the look at an object and its removal, or just after that."""
    loop = asyncio.get_running_loop()
    step = getattr(S3Store, name)

    def between(self: S3Store, *arguments: Any, **more: Any) -> Any:
        result = step(self, *arguments, **more)
        monkeypatch.setattr(S3Store, name, step)
        try:
            asyncio.run_coroutine_threadsafe(upload(), loop).result()
        except ObjectLeaving as refusal:
            refusals.append(refusal)
        return result

    monkeypatch.setattr(S3Store, name, between)


async def read(database: Database) -> bytes:
    async with database.read() as conn:
        content = (await store.find_contents(conn, [KEY.name]))[KEY.name]
    objects = open_store(database.hub.settings)
    return b"".join(contents.pieces(objects, content, 0, content.size))


@pytest.mark.parametrize("moment", ["_is_older", "delete"])
async def test_an_upload_beside_a_removal_is_refused_and_then_taken(
    database: Database, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    open_store(database.hub.settings).put_bytes(KEY, CONTENT)
    refusals: list[ObjectLeaving] = []
    upload_within(monkeypatch, moment, lambda: put_blob(database, None, CONTENT), refusals)

    await remove(database)

    assert len(refusals) == 1
    async with database.read() as conn:
        assert await store.find_contents(conn, [KEY.name]) == {}
    await put_blob(database, None, CONTENT)
    assert await read(database) == CONTENT


async def test_an_upload_that_put_its_object_before_the_removal_adds_its_row_in_vain(
    database: Database,
) -> None:
    objects = open_store(database.hub.settings)
    with objects.new_spool() as spool:
        spool.write(CONTENT)
        blob = contents.put_blob(objects, spool)

    await remove(database)

    with pytest.raises(ObjectLeaving, match="send it again in a moment"):
        async with database.transaction() as conn:
            await store.add_blobs(conn, [blob])


async def test_what_was_put_since_then_stays(database: Database) -> None:
    await put_blob(database, None, CONTENT)

    await remove(database, before=clock.now() - timedelta(days=1))

    await put_blob(database, None, CONTENT)
    assert await read(database) == CONTENT


async def test_a_removal_that_died_ends_after_an_hour(database: Database) -> None:
    async with database.transaction() as conn:
        await store.add_removal(conn, "0" * 24, [KEY])

    with pytest.raises(ObjectLeaving):
        await put_blob(database, None, CONTENT)
    clock.move(timedelta(hours=1, seconds=1))
    await put_blob(database, None, CONTENT)

    assert await read(database) == CONTENT


async def test_pruning_removes_rows_and_objects(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_blob(database, None, CONTENT)
    await put_cut_blob(database, None, [b"chunk"])
    objects = open_store(database.hub.settings)
    objects.put_bytes(blob_key("a" * 64), b"without a row")

    clock.move(timedelta(days=2))
    # A bucket does not let a test say when an object was put.
    monkeypatch.setattr(pruning, "_object_limit", lambda: clock.now() + timedelta(days=1))
    pruned = await pruning.prune(database)

    assert (pruned.blobs, pruned.xorbs, pruned.orphans) == (2, 1, 1)
    assert [*objects.list("blobs"), *objects.list("xorbs")] == []
