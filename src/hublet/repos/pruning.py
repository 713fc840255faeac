"""Pruning of the data folder: unused blobs, interrupted uploads, and folders without a repository.

Blobs are left alone for a day. An upload moves its bytes into the blob folder first and adds the
row after that, so a file without a row may just have arrived. In the same way a repository has
its folder before its row.
"""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.core.queue import NewTask, add_daily
from hublet.core.queue import add as add_task
from hublet.repos import blobs_store, store
from hublet.repos.git import bare_repos
from hublet.storage.object_store import ObjectStore, blob_key, open_store

PRUNE_BLOBS = "blobs.sweep"
REMOVE_ORPHANS = "repos.remove-orphans"

BLOB_AGE = timedelta(days=1)
PRUNE_EVERY = timedelta(days=1)
_ORPHAN_AGE = timedelta(hours=1)
_BLOB_BATCH = 500
_FOLDER_BATCH = 1000


async def schedule_blob_pruning(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    """Schedule the pruning of blobs, once a day however often this is called."""
    await add_daily(conn, PRUNE_BLOBS, delay=delay)


async def prune_blobs(database: Database) -> None:
    async with database.transaction() as conn:
        await schedule_blob_pruning(conn, delay=PRUNE_EVERY)
    storage = open_store(database.hub.settings)
    # Files know the real time, which test mode does not move.
    since = clock.now() - clock.offset() - BLOB_AGE
    await _remove_unused(database, storage, since)
    await _remove_unknown(database, storage, since)
    await asyncio.to_thread(remove_interrupted, storage, since=since)


async def _remove_unused(database: Database, storage: ObjectStore, since: datetime) -> None:
    before = clock.to_micros(clock.now() - BLOB_AGE)
    while True:
        async with database.transaction() as conn:
            digests = await blobs_store.remove_unused(conn, before=before, limit=_BLOB_BATCH)
        # Only after the commit can nobody find them through the database.
        await asyncio.to_thread(remove_blobs, storage, digests, since=since)
        if len(digests) < _BLOB_BATCH:
            return


async def _remove_unknown(database: Database, storage: ObjectStore, since: datetime) -> None:
    """Remove objects without a row: their process died before it added one."""
    digests = await asyncio.to_thread(list_old_blobs, storage, since=since)
    for start in range(0, len(digests), _BLOB_BATCH):
        batch = digests[start : start + _BLOB_BATCH]
        async with database.read() as conn:
            known = await blobs_store.find_known(conn, batch)
        unknown = [digest for digest in batch if digest not in known]
        await asyncio.to_thread(remove_blobs, storage, unknown, since=since)


def list_old_blobs(storage: ObjectStore, *, since: datetime) -> list[str]:
    """Return the digests of the blobs that were not written since then."""
    return [each.key.digest for each in storage.list("blobs") if each.modified_at < since]


def remove_blobs(storage: ObjectStore, digests: Iterable[str], *, since: datetime) -> None:
    """Remove the objects of these blobs, except those that were written since then."""
    storage.delete([blob_key(digest) for digest in digests], before=since)


def remove_interrupted(storage: ObjectStore, *, since: datetime) -> None:
    """Remove what is left of uploads that were not continued since then."""
    storage.remove_spools(before=since)
    old = [each.key for each in storage.list("parts") if each.modified_at < since]
    storage.delete(old, before=since)


async def schedule_orphan_removal(conn: Connection) -> None:
    """Schedule the removal of orphans; one such task waits at a time."""
    await add_task(conn, NewTask(kind=REMOVE_ORPHANS, body="{}", key=REMOVE_ORPHANS))


async def remove_orphans(database: Database) -> None:
    """Remove every folder of a repository that has no row and is more than an hour old."""
    # Files know the real time, which test mode does not move.
    before = clock.now() - clock.offset() - _ORPHAN_AGE
    data_dir = database.hub.settings.database.data_dir
    old = await asyncio.to_thread(_older_than, data_dir, before)
    for start in range(0, len(old), _FOLDER_BATCH):
        batch = {folder.stem: folder for folder in old[start : start + _FOLDER_BATCH]}
        async with database.read() as conn:
            known = await store.existing_of(conn, batch)
        for repo_id in batch.keys() - known:
            await asyncio.to_thread(bare_repos.remove, batch[repo_id])


def _older_than(data_dir: Path, moment: datetime) -> list[Path]:
    return [
        folder
        for folder in (data_dir / "repos").glob("??/*.git")
        if _folder_is_older(folder, moment)
    ]


def _folder_is_older(folder: Path, moment: datetime) -> bool:
    try:
        return datetime.fromtimestamp(folder.stat().st_mtime, UTC) < moment
    except FileNotFoundError:
        # It was deleted a moment ago, so there is nothing to do.
        return False
