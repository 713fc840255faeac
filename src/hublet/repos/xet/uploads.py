"""Uploads to the CAS: xorbs and shards, registered for a repository once all of it is verified."""

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from hublet.core.database import Connection
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError, TooLarge, TooManyRequests
from hublet.core.logs import get_logger
from hublet.repos import scrub_store
from hublet.repos import store as repos_store
from hublet.repos.errors import RepoNotFound
from hublet.repos.records import Repo
from hublet.repos.usage import check_quota
from hublet.repos.xet import store
from hublet.repos.xet.cas import Cas
from hublet.repos.xet.store import KnownFile
from hublet.repos.xet.tokens import CasAccess
from hublet.storage import store as storage
from hublet.storage.errors import FileTooLarge, InvalidShard, InvalidXorb
from hublet.storage.records import Xorb
from hublet.storage.shard_verification import (
    FileCheck,
    FileOutline,
    ShardOutline,
    VerifiedFile,
    outline,
    verify_claims,
    verify_files,
)
from hublet.storage.shards import LARGEST_SHARD
from hublet.storage.spools import Spool, fill
from hublet.storage.verification import verify_upload
from hublet.storage.workers import processes
from hublet.storage.xet_hashes import from_text, to_text
from hublet.storage.xorb_objects import put_xorb
from hublet.storage.xorbs import LARGEST_XORB, MOST_CHUNKS, Buffer, XorbLayout, footer_size

log = get_logger("xet")

# Some clients send a footer, which is not kept.
LARGEST_XORB_BODY = LARGEST_XORB + footer_size(MOST_CHUNKS)

# Files of a shard are verified in batches of so many, or of so much content. One that is larger
# than a batch is one by itself, and takes long.
_BATCH_FILES = 256
_BATCH_BYTES = 256 << 20
_BATCHES_AT_ONCE = 2
# Clients wait for five minutes between two frames.
FRAME_SECONDS = 20.0
# The content of all files of a shard, in multiples of the largest file.
_LARGEST_FILES_OF_SHARD = 4


async def receive_xorb(cas: Cas, access: CasAccess, xorb: str, body: AsyncIterable[Buffer]) -> bool:
    """Store a xorb; return whether it is new to this repository.

    One that the hub has already takes the same way: neither the response nor the time that it
    takes tells what other repositories have.
    """
    expected = from_text(xorb)
    async with cas.slots.one(access.user_id):
        stored, layout = await _store_xorb(cas, expected, body)
    async with cas.database.transaction() as conn:
        await _check_repo(conn, access.repo.id)
        await storage.add_xorb(conn, stored)
        for damaged in await scrub_store.list_damaged_forms(conn, stored.hash):
            # The bytes were lost, and those that came instead may be compressed in another way.
            await scrub_store.replace_xorb(conn, damaged, stored, layout)
        return await store.link_xorbs(conn, access.repo.id, [stored.name]) == 1


async def _store_xorb(
    cas: Cas, expected: bytes, body: AsyncIterable[Buffer]
) -> tuple[Xorb, XorbLayout]:
    spool = await asyncio.to_thread(cas.store.new_spool, hashed=False)
    try:
        await _fill(spool, body, largest=LARGEST_XORB_BODY, kind="xorb")
        layout, form = await processes.run(verify_upload, spool.path, expected)
        if layout.stored_size > LARGEST_XORB:
            raise InvalidXorb(f"A xorb has at most {LARGEST_XORB} bytes.")
        return await asyncio.to_thread(put_xorb, cas.store, spool, layout, form=form), layout
    finally:
        await asyncio.shield(asyncio.to_thread(spool.close))


async def _fill(spool: Spool, body: AsyncIterable[Buffer], *, largest: int, kind: str) -> None:
    try:
        await fill(spool, body, largest=largest)
    except FileTooLarge:
        raise TooLarge(f"A {kind} must have at most {largest} bytes.") from None
    await asyncio.to_thread(spool.flush)


def check_length(length: int | None, *, largest: int, kind: str) -> None:
    """Refuse a body that is announced as too large, before any of it is read."""
    if length is not None and length > largest:
        raise TooLarge(f"A {kind} must have at most {largest} bytes.")


async def _check_repo(conn: Connection, repo_id: str) -> Repo:
    # The repository may have been deleted while its files were on the way.
    repo = await repos_store.find(conn, repo_id)
    if repo is None:
        raise RepoNotFound
    return repo


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedShard:
    """A shard in its spool, with what it names and the repository has."""

    spool: Spool
    outline: ShardOutline
    xorbs: dict[bytes, Xorb]
    # By their hashes of Xet, files that the repository has already.
    known: dict[str, KnownFile]


async def receive_shard(cas: Cas, repo: Repo, body: AsyncIterable[Buffer]) -> ReceivedShard:
    """Take a shard and look up what it names; its spool is to be closed after the registration."""
    spool = await asyncio.to_thread(cas.store.new_spool, hashed=False)
    try:
        await _fill(spool, body, largest=LARGEST_SHARD, kind="shard")
        named = await processes.run(outline, spool.path)
        _check_sizes(named.files, largest=cas.database.hub.settings.limits.file_bytes)
        async with cas.database.read() as conn:
            xorbs = await store.find_xorbs(conn, repo.id, map(to_text, named.xorbs))
            hashes = [to_text(file.hash) for file in named.files]
            known = await store.find_files(conn, repo.id, hashes)
            new = sum(file.size for file in named.files if to_text(file.hash) not in known)
            await check_quota(conn, repo.owner_id, new)
    except BaseException:
        await asyncio.shield(asyncio.to_thread(spool.close))
        raise
    found = {from_text(xorb): record for xorb, record in xorbs.items()}
    return ReceivedShard(spool=spool, outline=named, xorbs=found, known=known)


def _check_sizes(files: Sequence[FileOutline], *, largest: int) -> None:
    if any(file.size > largest for file in files):
        raise FileTooLarge(largest)
    most = _LARGEST_FILES_OF_SHARD * largest
    if sum(file.size for file in files) > most:
        raise InvalidShard(f"The files of a shard have at most {most} bytes together.")


class ShardRegistration:
    """Verification of one shard, and the registration of its files when all of them are good."""

    def __init__(self, cas: Cas, repo_id: str, shard: ReceivedShard) -> None:
        self._cas = cas
        self._repo_id = repo_id
        self._shard = shard
        self.total = len(shard.outline.files)
        self.verified = 0
        self.is_verified = False

    async def run(self) -> bool:
        """Verify and register; return whether any of the files is new to the repository."""
        files = await self.verify()
        self.is_verified = True
        return await self.commit(files)

    async def commit(self, files: Sequence[VerifiedFile]) -> bool:
        """Register verified files; when this returns, they are durable."""
        async with self._cas.database.transaction() as conn:
            await self._register(conn, files)
        return any(file.hash not in self._shard.known for file in files)

    async def verify(self) -> list[VerifiedFile]:
        cas, shard = self._cas, self._shard
        slots = asyncio.Semaphore(_BATCHES_AT_ONCE)
        try:
            async with asyncio.TaskGroup() as group:
                claims = processes.run(verify_claims, cas.store, shard.spool.path, shard.xorbs)
                group.create_task(claims)
                tasks = [
                    group.create_task(self._verify_batch(batch, slots))
                    for batch in _batches(shard.outline.files)
                ]
        except ExceptionGroup as errors:
            # One refusal is enough.
            raise errors.exceptions[0] from None
        return [file for task in tasks for file in task.result()]

    async def _verify_batch(
        self, batch: Sequence[FileOutline], slots: asyncio.Semaphore
    ) -> list[VerifiedFile]:
        cas, shard = self._cas, self._shard
        checks = [FileCheck(file.offset, self._known_sha256(file)) for file in batch]
        is_long = sum(file.size for file in batch) > _BATCH_BYTES
        run = processes.run_long if is_long else processes.run
        async with slots:
            files = await run(verify_files, cas.store, shard.spool.path, checks, shard.xorbs)
        self.verified += len(files)
        return files

    def _known_sha256(self, file: FileOutline) -> str | None:
        known = self._shard.known.get(to_text(file.hash))
        return None if known is None else known.sha256

    async def _register(self, conn: Connection, files: Sequence[VerifiedFile]) -> None:
        repo_id = self._repo_id
        await conn.lock(f"xet {repo_id}")
        repo = await _check_repo(conn, repo_id)
        await self._keep_xorbs(conn)
        ordered = sorted(files, key=lambda each: each.sha256)
        # A shard may have ten thousand files.
        with conn.in_bulk():
            cut = [file.cut_blob for file in ordered]
            await storage.add_cut_blobs(conn, cut)
            await store.add_files(conn, repo_id, cut)
            indexed = [(file.chunks, file.xorbs) for file in ordered]
            await store.index_chunks(conn, repo_id, indexed)
            await store.link_unused_blobs(conn, repo_id, [each.blob for each in cut])
        await check_quota(conn, repo.owner_id, 0)

    async def _keep_xorbs(self, conn: Connection) -> None:
        """Keep garbage collection away from the xorbs; refuse when it took one in the meantime."""
        xorbs = [xorb.name for xorb in self._shard.xorbs.values()]
        if await store.use_xorbs(conn, self._repo_id, xorbs) < len(xorbs):
            raise InvalidShard("A xorb of the shard was removed while it was verified.")


def _batches(files: Iterable[FileOutline]) -> Iterator[list[FileOutline]]:
    batch: list[FileOutline] = []
    size = 0
    for file in files:
        if batch and (len(batch) == _BATCH_FILES or size + file.size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if batch:
        yield batch


async def register_shard(cas: Cas, access: CasAccess, body: AsyncIterable[Buffer]) -> bool:
    """Take, verify and register a shard; return whether any of its files is new."""
    async with _received(cas, access, body) as registration:
        return await registration.run()


async def stream_registration(
    cas: Cas, access: CasAccess, body: AsyncIterable[Buffer]
) -> AsyncGenerator[bytes]:
    """Do the same, and yield a frame now and then, the last one with the outcome.

    What is wrong with the request itself is raised before the first frame.
    """
    async with _received(cas, access, body) as registration:
        yield _progress_frame(registration)
        task = asyncio.create_task(registration.run())
        try:
            while not (await asyncio.wait([task], timeout=FRAME_SECONDS))[0]:
                yield _progress_frame(registration)
            yield _progress_frame(registration)
            yield _outcome_frame(task, repo_id=access.repo.id)
        finally:
            # Nobody listens any more, or it has ended anyway.
            task.cancel()
            await asyncio.wait([task])


@asynccontextmanager
async def _received(
    cas: Cas, access: CasAccess, body: AsyncIterable[Buffer]
) -> AsyncIterator[ShardRegistration]:
    async with cas.slots.one(access.user_id):
        shard = await receive_shard(cas, access.repo, body)
        try:
            yield ShardRegistration(cas, access.repo.id, shard)
        finally:
            # Who leaves cancels this again and again, also before a thread is free for it.
            await asyncio.shield(asyncio.to_thread(shard.spool.close))


def _progress_frame(registration: ShardRegistration) -> bytes:
    if registration.is_verified:
        return _frame(type="committing", stage="syncing")
    return _frame(type="validating", verified=registration.verified, total=registration.total)


def _outcome_frame(task: asyncio.Task[bool], *, repo_id: str) -> bytes:
    error = task.exception()
    if error is None:
        return _frame(type="result")
    if isinstance(error, HubError):
        retryable = error.status >= TooManyRequests.status
        return _frame(type="error", message=error.message, retryable=retryable)
    log.error("shard not registered", repo_id=repo_id, exc_info=error)
    return _frame(type="error", message="Something went wrong; try again.", retryable=True)


def _frame(**fields: Any) -> bytes:
    return msgspec.json.encode(fields) + b"\n"
