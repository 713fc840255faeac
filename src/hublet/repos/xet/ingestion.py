"""Ingestion: what arrives by other ways than Xet is cut and packed as the public clients do it.

A content is stored whole first. Buckets wait until it is cut, because their clients need its file
hash; for git repositories a task cuts it soon after. From then on it is read from its segments. The
whole object stays for an hour, for those who looked it up a moment before. Where downloads of large
contents are redirected to a bucket, such ones stay whole.

Each repository cuts for itself, even what another one has cut already: so how its contents are packed
tells nothing of others. Equal xorbs are stored once all the same.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import islice
from weakref import WeakSet

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.core.dataclasses import dataclass
from hublet.core.errors import Unavailable
from hublet.core.logs import get_logger
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.repos import store as repos_store
from hublet.repos.pruning_store import WHOLE_AGE
from hublet.repos.records import RepoType
from hublet.repos.xet import ingestion_store
from hublet.repos.xet import store as xet_store
from hublet.storage import chunker
from hublet.storage import store as storage
from hublet.storage.chunker import CutContent, CutResult
from hublet.storage.contents import is_kept_whole
from hublet.storage.object_store import StoredObject, blob_key, open_store
from hublet.storage.records import Blob, Content
from hublet.storage.removals import remove_objects
from hublet.storage.workers import processes
from hublet.storage.xorbs import SMALLEST_CHUNK

REMOVE_WHOLE = "contents.remove-whole"

log = get_logger("ingestion")

_BATCH = 200
# So much is cut at once, and done again if the process dies.
_BATCH_BYTES = 64 << 20
# Contents of a request that are no larger are cut in a thread: a chunk each, it takes no time.
_LARGEST_SMALL = 1 << 20
_LONGEST_PAUSE_SECONDS = 5.0
# A file of 32 GB has so many; of other files beside it, the client finds no more either.
_MOST_PROMISING = 512


async def cut_now(database: Database, repo_id: str, blobs: Sequence[Blob]) -> None:
    """Cut contents that have just arrived, and that a repository is about to point to.

    No transaction may be open. The blobs have rows after this, and their file hashes; where a worker
    process was killed they stay whole, and a task cuts them soon.
    """
    # What only other repositories have cut is cut once more: their packing would tell of them.
    async with database.read() as conn:
        cut = await ingestion_store.find_cut_in_repo(conn, repo_id, [blob.sha256 for blob in blobs])
    # They have just been put as whole objects.
    uncut = {
        blob.sha256: Content(sha256=blob.sha256, size=blob.size)
        for blob in blobs
        if blob.sha256 not in cut
    }
    for batch in _batches(uncut.values()):
        try:
            await _cut(database, repo_id, batch, is_fresh=True)
        except Unavailable:
            log.warning("contents not cut", contents=len(batch))
            async with database.transaction() as conn:
                await chunker.schedule_cutting(conn)


async def _cut(
    database: Database, repo_id: str, wanted: Sequence[Content], *, is_fresh: bool = False
) -> CutResult:
    store = open_store(database.hub.settings)
    is_small = all(content.size <= SMALLEST_CHUNK for content in wanted)
    is_small = is_small and sum(content.size for content in wanted) <= _LARGEST_SMALL
    run = asyncio.to_thread if is_small else processes.run_long
    chunks = await run(chunker.list_chunks, store, wanted)
    queried = [chunk for each in chunks for chunk in chunker.queried_chunks(each)]
    async with database.read() as conn:
        names = await ingestion_store.find_promising_xorbs(conn, repo_id, queried)
        known = await xet_store.find_named_xorbs(conn, repo_id, names)
    promising = known[:_MOST_PROMISING]
    result = await run(chunker.pack, store, wanted, chunks, promising, is_fresh=is_fresh)
    async with database.transaction() as conn:
        await _register(conn, repo_id, result)
    return result


async def _register(conn: Connection, repo_id: str, result: CutResult) -> None:
    if await repos_store.find(conn, repo_id) is None:
        # It was deleted in the meantime.
        return
    for xorb in result.xorbs:
        await storage.add_xorb(conn, xorb)
    names = sorted({each.xorb for content in result.contents for each in content.segments})
    await xet_store.link_xorbs(conn, repo_id, names)
    await xet_store.use_xorbs(conn, repo_id, names)
    cut = [content.cut_blob for content in result.contents]
    await storage.add_cut_blobs(conn, cut)
    await xet_store.add_files(conn, repo_id, cut)
    await xet_store.index_chunks(conn, repo_id, map(_indexed, result.contents))
    await ingestion_store.set_cut(conn, [content.sha256 for content in result.contents])
    await _schedule_removal(conn)


def _indexed(content: CutContent) -> tuple[dict[str, str], list[str]]:
    """Return the xorb of each chunk that clients ask for, and all xorbs of a content in their order."""
    xorbs = [each.xorb for each in content.segments]
    chunks = {chunk: xorbs[position] for chunk, position in content.queried_chunks}
    return chunks, list(dict.fromkeys(xorbs))


_busy: WeakSet[Database] = WeakSet()


async def cut_waiting(database: Database) -> None:
    """Cut what repositories hold and is not cut yet; who stops in between goes on with the rest."""
    if database in _busy:
        async with database.transaction() as conn:
            await chunker.schedule_cutting(conn)
        return
    _busy.add(database)
    try:
        await _cut_all(database)
    finally:
        _busy.discard(database)


@dataclass(slots=True, kw_only=True)
class _Progress:
    contents: int = 0
    bytes: int = 0
    # Bytes of new xorbs.
    stored: int = 0


async def _cut_all(database: Database) -> None:
    done = _Progress()
    repo_id = ""
    while True:
        async with database.read() as conn:
            found = await ingestion_store.find_next_repo(conn, after=repo_id)
        if found is None:
            return
        repo_id = found
        await _cut_repo(database, repo_id, done)
        log.info("contents cut", contents=done.contents, bytes=done.bytes, stored=done.stored)


async def _cut_repo(database: Database, repo_id: str, done: _Progress) -> None:
    """Cut what waits in one repository: so how it is packed does not depend on what others have."""
    after = ""
    while True:
        async with database.read() as conn:
            waiting = await ingestion_store.list_uncut(conn, repo_id, after=after, limit=_BATCH)
        if not waiting:
            return
        after = waiting[-1].sha256
        for batch in _batches(await _leave_whole(database, repo_id, waiting)):
            started = clock.monotonic()
            await _cut_or_log(database, repo_id, batch, done)
            # Half of the time is left to requests.
            await asyncio.sleep(min(clock.monotonic() - started, _LONGEST_PAUSE_SECONDS))


async def _leave_whole(
    database: Database, repo_id: str, waiting: Sequence[Content]
) -> list[Content]:
    """Leave large contents whole whose downloads are redirected; return those that are to be cut.

    What lies in no git repository is cut in any case: its clients need the file hash.
    """
    settings = database.hub.settings
    whole = [each for each in waiting if each.is_whole and is_kept_whole(settings, each.size)]
    if whole:
        async with database.transaction() as conn:
            repo = await repos_store.find(conn, repo_id)
            if repo is None or repo.type in {RepoType.bucket, RepoType.container}:
                return list(waiting)
            await ingestion_store.set_left_whole(conn, repo_id, [each.sha256 for each in whole])
    return [each for each in waiting if each not in whole]


def _batches(contents: Iterable[Content]) -> Iterator[list[Content]]:
    batch: list[Content] = []
    for content in contents:
        if batch and sum(each.size for each in batch) + content.size > _BATCH_BYTES:
            yield batch
            batch = []
        batch.append(content)
    if batch:
        yield batch


async def _cut_or_log(
    database: Database, repo_id: str, wanted: Sequence[Content], done: _Progress
) -> None:
    try:
        result = await _cut(database, repo_id, wanted)
    except (ValueError, OSError, Unavailable) as error:
        if len(wanted) == 1:
            # It stays whole, and is tried again with the next task.
            log.warning("content not cut", sha256=wanted[0].sha256, error=str(error))
            return
        for content in wanted:
            await _cut_or_log(database, repo_id, [content], done)
    else:
        done.contents += len(wanted)
        done.bytes += sum(content.size for content in wanted)
        done.stored += sum(xorb.stored_size for xorb in result.xorbs)


async def _schedule_removal(conn: Connection) -> None:
    window = clock.micros() // (WHOLE_AGE // timedelta(microseconds=1))
    task = NewTask(
        kind=REMOVE_WHOLE, body="{}", key=f"{REMOVE_WHOLE}.{window}", delay=2 * WHOLE_AGE
    )
    await add_task(conn, task)


async def remove_whole_copies(database: Database) -> None:
    """Remove whole objects of contents that have been read from segments for an hour."""
    store = open_store(database.hub.settings)
    # Files know the real time, which test mode does not move.
    put_before = clock.now() - clock.offset() - WHOLE_AGE
    objects = store.list("blobs")
    while batch := await asyncio.to_thread(_next_batch, objects):
        async with database.read() as conn:
            cut_before = clock.to_micros(clock.now() - WHOLE_AGE)
            cut = await ingestion_store.find_cut(conn, batch, before=cut_before)
        keys = [blob_key(sha256) for sha256 in sorted(cut)]
        await remove_objects(database, store, keys, before=put_before)


def _next_batch(objects: Iterator[StoredObject]) -> list[str]:
    return [each.key.name for each in islice(objects, _BATCH)]
