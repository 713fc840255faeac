"""Pruning of the storage, and of folders without a repository.

What nothing needs goes in this order: registrations that nothing took, blobs that nothing points to,
layouts that no repository sees of blobs that are seen otherwise, links of repositories to xorbs that none of their contents uses, xorbs without links and segments,
objects without rows. It is safe beside uploads and beside other pruning:

- An upload puts its object first and adds the row after; pruning removes the row first, and then only
  an object that was not put within the last day. So whichever comes first, a row has its object: an
  upload that comes after the row went finds its object left alone, because it is new, and adds the row
  anew; one that comes before has locked or renewed the row. `storage.removals` has the rest of it.
- A row is locked and looked at again before it goes. Who refers to it in the meantime waits and finds
  it gone, or was first and keeps it. A row of a blob or a xorb that is added again waits, too, and is
  then inserted.
- A commit, a push or a bucket that takes a registration updates it in its own transaction, and is
  refused if it went a moment before: the client uploads again. A shard does the same with the links
  of the xorbs that it names.
- A client knows for 21 days what xorbs a repository has, and fails when it names one that is gone. So
  a link goes 22 days after it was seen unused, and chunk queries name only links in use. A new epoch
  makes all clients forget; then links that were unused before it go at once, except those of xorbs
  that arrived within the last day.
- A blob that was cut stays cut when it is uploaded whole once more, so that its whole object can go.

A repository has its folder before its row, so folders are left alone for a while as well.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.core.dataclasses import dataclass
from hublet.core.queue import NewTask, add_daily
from hublet.core.queue import add as add_task
from hublet.repos import pruning_store, store, usage
from hublet.repos.git import bare_repos
from hublet.repos.packs.compaction import sweep as sweep_packs
from hublet.storage.epochs import get_epoch_start
from hublet.storage.object_store import (
    ObjectKey,
    ObjectStore,
    StoredObject,
    blob_key,
    has_shared_store,
    open_store,
    xorb_key,
)
from hublet.storage.removals import check_not_held, remove_objects
from hublet.storage.xorbs import footer_size

PRUNE_BLOBS = "blobs.sweep"
REMOVE_ORPHANS = "repos.remove-orphans"

BLOB_AGE = timedelta(days=1)
# How long an upload may wait for the commit or the bucket that takes it.
REGISTRATION_AGE = timedelta(days=7)
# The cache of the public client lives 21 days.
LINK_AGE = timedelta(days=22)
PRUNE_EVERY = timedelta(days=1)
_ORPHAN_AGE = timedelta(hours=1)
_BATCH = 500
_FOLDER_BATCH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What a pruning removed."""

    registrations: int = 0
    blobs: int = 0
    links: int = 0
    xorbs: int = 0
    # Objects without a row, and what interrupted uploads left, in bytes.
    orphans: int = 0
    interrupted_bytes: int = 0
    # Bytes at rest that were freed, of all of these.
    freed_bytes: int = 0

    def __add__(self, other: "Pruned") -> "Pruned":
        return Pruned(
            registrations=self.registrations + other.registrations,
            blobs=self.blobs + other.blobs,
            links=self.links + other.links,
            xorbs=self.xorbs + other.xorbs,
            orphans=self.orphans + other.orphans,
            interrupted_bytes=self.interrupted_bytes + other.interrupted_bytes,
            freed_bytes=self.freed_bytes + other.freed_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Rows that one transaction removed, and the objects that may go after it."""

    rows: Pruned
    objects: Sequence[ObjectKey] = ()
    # Whether there may be more of them.
    is_full: bool


async def schedule_blob_pruning(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    """Schedule the pruning of the storage, once a day however often this is called."""
    await add_daily(conn, PRUNE_BLOBS, delay=delay)


async def prune_blobs(database: Database) -> None:
    async with database.transaction() as conn:
        await schedule_blob_pruning(conn, delay=PRUNE_EVERY)
    pruned = await prune(database)
    if has_shared_store(database.hub.settings):
        pruned += Pruned(freed_bytes=await sweep_packs(database))
    async with database.transaction() as conn:
        await usage.remember(conn, usage.Upkeep.pruning, freed=pruned.freed_bytes)
    await usage.measure(database)


async def prune(database: Database) -> Pruned:
    """Remove everything that nothing needs; return what it was."""
    objects = open_store(database.hub.settings)
    before = _object_limit()
    async with database.transaction() as conn:
        await check_not_held(conn)
    interrupted = await _remove_interrupted(database, objects)
    pruned = Pruned(interrupted_bytes=interrupted, freed_bytes=interrupted)
    for step in _steps():
        pruned += await _repeat(database, objects, step)
    async for orphans in _find_orphan_objects(database, objects, before):
        await remove_objects(database, objects, [each.key for each in orphans], before=before)
        pruned += _count_orphans(orphans)
    return pruned


class _Undo(Exception):
    """Ends a transaction that was only tried."""


async def preview(database: Database) -> Pruned:
    """Return what `prune` would remove now, without what interrupted uploads left.

    It removes the rows and undoes that, so others wait to write until it is done.
    """
    pruned = Pruned()
    objects = open_store(database.hub.settings)
    async for orphans in _find_orphan_objects(database, objects, _object_limit()):
        pruned += _count_orphans(orphans)
    with suppress(_Undo):
        async with database.transaction() as conn:
            pruned += await _run_all(conn)
            raise _Undo
    return pruned


async def _run_all(conn: Connection) -> Pruned:
    pruned = Pruned()
    with conn.in_bulk():
        for step in _steps():
            while (batch := await step(conn)).is_full:
                pruned += batch.rows
            pruned += batch.rows
    return pruned


def _object_limit() -> datetime:
    """Return the time before which an object must have been put to be removed."""
    # Files know the real time, which test mode does not move.
    return clock.now() - clock.offset() - BLOB_AGE


async def _repeat(
    database: Database,
    objects: ObjectStore,
    step: Callable[[Connection], Awaitable[_Batch]],
) -> Pruned:
    pruned = Pruned()
    while True:
        async with database.transaction() as conn:
            await check_not_held(conn)
            with conn.in_bulk():
                batch = await step(conn)
        # Only after the commit can nobody find them through the database.
        await remove_objects(database, objects, batch.objects, before=_object_limit())
        pruned += batch.rows
        if not batch.is_full:
            return pruned


def _ago(age: timedelta) -> int:
    return clock.to_micros(clock.now() - age)


async def _remove_registrations(conn: Connection) -> _Batch:
    count = await pruning_store.remove_registrations(
        conn, before=_ago(REGISTRATION_AGE), limit=_BATCH
    )
    return _Batch(rows=Pruned(registrations=count), is_full=count == _BATCH)


async def _remove_blobs(conn: Connection) -> _Batch:
    removed = await pruning_store.remove_blobs(conn, before=_ago(BLOB_AGE), limit=_BATCH)
    freed = sum(blob.size for blob in removed if blob.is_whole)
    return _Batch(
        rows=Pruned(blobs=len(removed), freed_bytes=freed),
        is_full=len(removed) == _BATCH,
        objects=[blob_key(blob.sha256) for blob in removed],
    )


async def _remove_layouts(conn: Connection) -> _Batch:
    unheld = await pruning_store.remove_unheld(conn, before=_ago(BLOB_AGE), limit=_BATCH)
    unseen = await pruning_store.remove_layouts(conn, limit=_BATCH)
    return _Batch(rows=Pruned(), is_full=_BATCH in {unheld, unseen})


class _LinkMarking:
    """Notes, page by page, which links of repositories to xorbs are unused, and since when."""

    def __init__(self) -> None:
        self._after = ("", "")

    async def step(self, conn: Connection) -> _Batch:
        links = await pruning_store.list_links(conn, after=self._after, limit=_BATCH)
        unused = [each for each in links if not each.is_used and each.unused_since is None]
        used = [each for each in links if each.is_used and each.unused_since is not None]
        await pruning_store.set_unused_since(conn, unused, clock.micros())
        await pruning_store.set_unused_since(conn, used, None)
        if links:
            self._after = (links[-1].repo_id, links[-1].xorb)
        return _Batch(rows=Pruned(), is_full=len(links) == _BATCH)


async def _remove_links(conn: Connection) -> _Batch:
    count = await pruning_store.remove_links(
        conn,
        unused_before=max(_ago(LINK_AGE), await get_epoch_start(conn)),
        arrived_before=_ago(BLOB_AGE),
        limit=_BATCH,
    )
    return _Batch(rows=Pruned(links=count), is_full=count == _BATCH)


async def _remove_xorbs(conn: Connection) -> _Batch:
    removed = await pruning_store.remove_xorbs(conn, before=_ago(BLOB_AGE), limit=_BATCH)
    freed = sum(xorb.stored_size + footer_size(xorb.chunks) for xorb in removed)
    return _Batch(
        rows=Pruned(xorbs=len(removed), freed_bytes=freed),
        is_full=len(removed) == _BATCH,
        objects=[xorb_key(xorb.name) for xorb in removed],
    )


def _steps() -> list[Callable[[Connection], Awaitable[_Batch]]]:
    return [
        _remove_registrations,
        _remove_blobs,
        _remove_layouts,
        _LinkMarking().step,
        _remove_links,
        _remove_xorbs,
    ]


async def _find_orphan_objects(
    database: Database, objects: ObjectStore, before: datetime
) -> AsyncIterator[list[StoredObject]]:
    """Yield objects without a row: their process died before it added one, or they were cut."""
    for kind in ("blobs", "xorbs"):
        old = (each for each in objects.list(kind) if each.modified_at < before)
        while batch := await asyncio.to_thread(list, islice(old, _BATCH)):
            async with database.read() as conn:
                needed = await pruning_store.find_needed(
                    conn,
                    kind,
                    [each.key.name for each in batch],
                    # Whoever looked it up before it was cut has opened it by now.
                    cut_before=_ago(pruning_store.WHOLE_AGE),
                )
            yield [each for each in batch if each.key.name not in needed]


def _count_orphans(orphans: Sequence[StoredObject]) -> Pruned:
    return Pruned(orphans=len(orphans), freed_bytes=sum(each.size for each in orphans))


async def schedule_orphan_removal(conn: Connection) -> None:
    """Schedule the removal of orphans; one such task waits at a time."""
    await add_task(conn, NewTask(kind=REMOVE_ORPHANS, body="{}", key=REMOVE_ORPHANS))


async def remove_interrupted(database: Database) -> None:
    """Remove what uploads through this machine left that were not continued for a day."""
    await _remove_interrupted(database, open_store(database.hub.settings))


async def _remove_interrupted(database: Database, objects: ObjectStore) -> int:
    before = _object_limit()
    async with database.read() as conn:
        kept = await pruning_store.list_layer_parts(conn)
    return await asyncio.to_thread(objects.remove_interrupted, before=before, kept=kept)


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
