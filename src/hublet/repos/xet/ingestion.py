"""Ingestion: what arrives by other ways than Xet is cut and packed as the public clients do it.

A content is stored whole first. Buckets wait until it is cut, because their clients need its file
hash; for git repositories a task cuts it soon after. From then on it is read from its segments. The
whole object stays for an hour, for those who looked it up a moment before.

A repository may use a xorb in its uploads if its contents have all chunks of it. So one that holds the
same content as another repository gets no xorb with chunks of foreign contents beside it.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import groupby, islice
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
from hublet.repos.xet import ingestion_store
from hublet.repos.xet import store as xet_store
from hublet.repos.xet.ingestion_store import UncutContent
from hublet.storage import chunker
from hublet.storage import store as storage
from hublet.storage.chunker import CutContent, CutResult
from hublet.storage.object_store import StoredObject, blob_key, open_store
from hublet.storage.records import Blob, Content
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
    """Cut contents that a repository is about to point to; their bytes are in the store.

    No transaction may be open. The blobs have rows after this, and their file hashes.
    """
    # What only other repositories have is cut once more: that it takes no time would tell of them.
    async with database.read() as conn:
        own = (await ingestion_store.find_holders(conn, [blob.sha256 for blob in blobs])).get(
            repo_id, set()
        )
        cut = await storage.find_xet_hashes(conn, own)
    uncut = [
        blob for blob in {each.sha256: each for each in blobs}.values() if blob.sha256 not in cut
    ]
    for batch in _batches(uncut):
        await _cut(database, repo_id, batch)


async def _cut(database: Database, repo_id: str, blobs: Sequence[Blob]) -> CutResult:
    store = open_store(database.hub.settings)
    wanted = [Content(sha256=blob.sha256, size=blob.size) for blob in blobs]
    is_small = all(blob.size <= SMALLEST_CHUNK for blob in blobs)
    is_small = is_small and sum(blob.size for blob in blobs) <= _LARGEST_SMALL
    run = asyncio.to_thread if is_small else processes.run_long
    chunks = await run(chunker.list_chunks, store, wanted)
    queried = [chunk for each in chunks for chunk in chunker.queried_chunks(each)]
    async with database.read() as conn:
        hashes = await ingestion_store.find_promising_xorbs(conn, repo_id, queried)
        known = list((await xet_store.find_xorbs(conn, repo_id, hashes)).values())
    result = await run(chunker.pack, store, wanted, chunks, known[:_MOST_PROMISING])
    async with database.transaction() as conn:
        await _register(conn, repo_id, blobs, result)
    return result


async def _register(
    conn: Connection, repo_id: str, blobs: Sequence[Blob], result: CutResult
) -> None:
    for xorb in result.xorbs:
        await storage.add_xorb(conn, xorb)
    for blob, cut in zip(blobs, result.contents, strict=True):
        await storage.add_cut_blob(conn, blob, cut.xet_hash, cut.segments)
    digests = [blob.sha256 for blob in blobs]
    await ingestion_store.set_cut(conn, digests)
    holders = await ingestion_store.find_holders(conn, digests)
    # What it has of others it has had before.
    await _give(conn, repo_id, result.contents, set(_xorbs_of(result.contents)))
    counts = {xorb.hash: xorb.chunks for xorb in result.xorbs}
    for holder in sorted(holders.keys() - {repo_id}):
        held = [each for each in result.contents if each.sha256 in holders[holder]]
        await _give(conn, holder, held, _covered(held, counts))
    await _schedule_removal(conn)


async def _give(
    conn: Connection, repo_id: str, contents: Iterable[CutContent], xorbs: set[str]
) -> None:
    """Let a repository use xorbs, and let its clients find them."""
    if await repos_store.find(conn, repo_id) is None:
        # It was deleted in the meantime.
        return
    await xet_store.link_xorbs(conn, repo_id, sorted(xorbs))
    await xet_store.use_xorbs(conn, repo_id, sorted(xorbs))
    indexed = []
    for content in contents:
        chunks = {
            chunk: content.segments[position].xorb
            for chunk, position in content.queried_chunks
            if content.segments[position].xorb in xorbs
        }
        order = [xorb for xorb in _xorbs_of([content]) if xorb in xorbs]
        indexed.append((chunks, order))
    await xet_store.index_chunks(conn, repo_id, indexed)


def _xorbs_of(contents: Iterable[CutContent]) -> list[str]:
    """Return the xorbs of these contents, each once, in their order."""
    return list(dict.fromkeys(each.xorb for content in contents for each in content.segments))


def _covered(contents: Iterable[CutContent], counts: Mapping[str, int]) -> set[str]:
    """Return those xorbs, given with their number of chunks, of which contents have all chunks."""
    runs = sorted(
        (segment.xorb, segment.start_chunk, segment.end_chunk)
        for content in contents
        for segment in content.segments
    )
    covered = set()
    for xorb, group in groupby(runs, key=lambda run: run[0]):
        end = 0
        for _, start, its_end in group:
            end = max(end, its_end) if start <= end else -1
            if end < 0:
                break
        if end == counts.get(xorb):
            covered.add(xorb)
    return covered


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
    after = ""
    while True:
        async with database.read() as conn:
            waiting = await ingestion_store.list_uncut(conn, after=after, limit=_BATCH)
        if not waiting:
            return
        after = waiting[-1].sha256
        for repo_id, blobs in _by_repo(waiting):
            started = clock.monotonic()
            await _cut_or_log(database, repo_id, blobs, done)
            # Half of the time is left to requests.
            await asyncio.sleep(min(clock.monotonic() - started, _LONGEST_PAUSE_SECONDS))
        log.info("contents cut", contents=done.contents, bytes=done.bytes, stored=done.stored)


def _by_repo(waiting: Sequence[UncutContent]) -> Iterator[tuple[str, list[Blob]]]:
    for repo_id, group in groupby(sorted(waiting, key=_repo_of), key=_repo_of):
        for batch in _batches([Blob(sha256=each.sha256, size=each.size) for each in group]):
            yield repo_id, batch


def _repo_of(content: UncutContent) -> str:
    return content.repo_id


def _batches(blobs: Iterable[Blob]) -> Iterator[list[Blob]]:
    batch: list[Blob] = []
    for blob in blobs:
        if batch and sum(each.size for each in batch) + blob.size > _BATCH_BYTES:
            yield batch
            batch = []
        batch.append(blob)
    if batch:
        yield batch


async def _cut_or_log(
    database: Database, repo_id: str, blobs: Sequence[Blob], done: _Progress
) -> None:
    try:
        result = await _cut(database, repo_id, blobs)
    except (ValueError, OSError, Unavailable) as error:
        if len(blobs) == 1:
            # It stays whole, and is tried again with the next task.
            log.warning("content not cut", sha256=blobs[0].sha256, error=str(error))
            return
        for blob in blobs:
            await _cut_or_log(database, repo_id, [blob], done)
    else:
        done.contents += len(blobs)
        done.bytes += sum(blob.size for blob in blobs)
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
        await asyncio.to_thread(store.delete, map(blob_key, sorted(cut)), before=put_before)


def _next_batch(objects: Iterator[StoredObject]) -> list[str]:
    return [each.key.digest for each in islice(objects, _BATCH)]
