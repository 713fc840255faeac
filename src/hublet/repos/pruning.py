"""Pruning of the data folder: unused blobs, interrupted uploads, and folders without a repository.

Blobs are left alone for a day. An upload moves its bytes into the blob folder first and adds the
row after that, so a file without a row may just have arrived. In the same way a repository has
its folder before its row.
"""

import asyncio
import shutil
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.core.queue import NewTask, add_daily
from hublet.core.queue import add as add_task
from hublet.repos import blobs_store, store
from hublet.repos.blobs import blob_path, blobs_folder, incoming_folder, parts_folder
from hublet.repos.git import bare_repos

PRUNE_BLOBS = "blobs.sweep"
REMOVE_ORPHANS = "repos.remove-orphans"

BLOB_AGE = timedelta(days=1)
PRUNE_EVERY = timedelta(days=1)
_ORPHAN_AGE = timedelta(hours=1)
_BLOB_BATCH = 500
_FOLDER_BATCH = 1000

# Blobs are two folders deep, each named by two characters of the digest.
_BLOB_FOLDER = "[0-9a-f][0-9a-f]"


async def schedule_blob_pruning(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    """Schedule the pruning of blobs, once a day however often this is called."""
    await add_daily(conn, PRUNE_BLOBS, delay=delay)


async def prune_blobs(database: Database) -> None:
    async with database.transaction() as conn:
        await schedule_blob_pruning(conn, delay=PRUNE_EVERY)
    data_dir = database.hub.settings.database.data_dir
    # Files know the real time, which test mode does not move.
    since = (clock.now() - clock.offset() - BLOB_AGE).timestamp()
    await _remove_unused(database, data_dir, since)
    await _remove_unknown(database, data_dir, since)
    await asyncio.to_thread(remove_interrupted, data_dir, since=since)


async def _remove_unused(database: Database, data_dir: Path, since: float) -> None:
    before = clock.to_micros(clock.now() - BLOB_AGE)
    while True:
        async with database.transaction() as conn:
            digests = await blobs_store.remove_unused(conn, before=before, limit=_BLOB_BATCH)
        # Only after the commit can nobody find them through the database.
        await asyncio.to_thread(remove_blobs, data_dir, digests, since=since)
        if len(digests) < _BLOB_BATCH:
            return


async def _remove_unknown(database: Database, data_dir: Path, since: float) -> None:
    """Remove files without a row: their process died before it added one."""
    for folder in await asyncio.to_thread(list_blob_folders, data_dir):
        digests = await asyncio.to_thread(list_old_blobs, folder, since=since)
        for start in range(0, len(digests), _BLOB_BATCH):
            batch = digests[start : start + _BLOB_BATCH]
            async with database.read() as conn:
                known = await blobs_store.find_known(conn, batch)
            unknown = [digest for digest in batch if digest not in known]
            await asyncio.to_thread(remove_blobs, data_dir, unknown, since=since)


def list_blob_folders(data_dir: Path) -> list[Path]:
    """Return the folders that hold blobs."""
    return sorted(blobs_folder(data_dir).glob(f"{_BLOB_FOLDER}/{_BLOB_FOLDER}"))


def list_old_blobs(folder: Path, *, since: float) -> list[str]:
    """Return the digests of the blobs in one folder that were not written since then."""
    return sorted(path.name for path in folder.iterdir() if _is_old(path, since))


def remove_blobs(data_dir: Path, digests: Iterable[str], *, since: float) -> None:
    """Remove the files of these blobs, except those that were written since then."""
    for digest in digests:
        _remove_blob(blob_path(data_dir, digest), incoming_folder(data_dir), since)


def _remove_blob(path: Path, incoming: Path, since: float) -> None:
    incoming.mkdir(parents=True, exist_ok=True)
    aside = incoming / f"{path.name}.leaving"
    try:
        path.rename(aside)
    except FileNotFoundError:
        return
    if not _is_old(aside, since):
        # The same bytes were uploaded again. A check before the rename would lose an upload that
        # arrives in between.
        with suppress(FileExistsError):
            path.hardlink_to(aside)
    aside.unlink()


def remove_interrupted(data_dir: Path, *, since: float) -> None:
    """Remove the files of uploads that were not continued since then."""
    for path in _children(incoming_folder(data_dir)):
        if _is_old(path, since):
            path.unlink(missing_ok=True)
    for upload in _children(parts_folder(data_dir)):
        # The folder is as old as its youngest part.
        if _is_old(upload, since):
            shutil.rmtree(upload, ignore_errors=True)


def _children(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _is_old(path: Path, since: float) -> bool:
    try:
        return path.stat().st_mtime < since
    except FileNotFoundError:
        # It is gone already.
        return False


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
