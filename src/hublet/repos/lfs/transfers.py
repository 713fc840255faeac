"""LFS transfers: upload of large files, whole or in parts, and the content of one to download."""

import asyncio
from collections.abc import AsyncIterable, Sequence
from datetime import UTC, datetime

from hublet.core.database import Connection, Database
from hublet.repos import blobs_store, store
from hublet.repos.errors import InvalidUpload, ObjectNotFound
from hublet.repos.lfs.links import Link
from hublet.repos.lfs.schemas import CompleteUpload
from hublet.repos.usage import check_quota
from hublet.storage import chunker
from hublet.storage.contents import put_blob
from hublet.storage.errors import FileTooLarge
from hublet.storage.object_store import ObjectKey, ObjectStore, open_store, part_key
from hublet.storage.records import Blob, Content
from hublet.storage.spools import Spool, fill
from hublet.storage.store import add_blobs
from hublet.storage.xorbs import Buffer


async def receive(database: Database, link: Link, pieces: AsyncIterable[Buffer]) -> None:
    """Store an object that is uploaded in one piece."""
    await _check_repo(database, link)
    spool = await asyncio.to_thread(_spool, database, link)
    try:
        await _fill(spool, pieces, size=link.size)
        await _store(database, link, spool)
    finally:
        await asyncio.shield(asyncio.to_thread(spool.close))


async def receive_part(database: Database, link: Link, pieces: AsyncIterable[Buffer]) -> str:
    """Store a part until all have arrived; return its etag.

    The same part may be sent again. The request to complete the upload names an etag for each.
    """
    await _check_repo(database, link)
    storage = open_store(database.hub.settings)
    spool = await asyncio.to_thread(storage.new_spool)
    try:
        await _fill(spool, pieces, size=link.size)
        etag = spool.sha256
        await asyncio.to_thread(storage.put, _part_key(link, link.part, etag), spool, durable=False)
    finally:
        await asyncio.shield(asyncio.to_thread(spool.close))
    return etag


async def complete(database: Database, link: Link, body: CompleteUpload) -> None:
    """Assemble an object from its parts and store it."""
    if body.oid != link.oid:
        raise InvalidUpload("oid must be the object that this link is for.")
    if [part.partNumber for part in body.parts] != list(range(1, link.part + 1)):
        raise InvalidUpload(f"parts must name each of the {link.part} parts once, in their order.")
    await _check_repo(database, link)
    if await _has_object(database, link):
        # The same request again, because its first response was lost.
        return
    keys = [_part_key(link, part.partNumber, part.etag.strip('"')) for part in body.parts]
    storage = open_store(database.hub.settings)
    spool = await asyncio.to_thread(_spool, database, link)
    try:
        await _assemble(storage, spool, keys)
        _check_size(spool, link.size)
        await _store(database, link, spool)
    finally:
        await asyncio.shield(asyncio.to_thread(spool.close))
    await asyncio.to_thread(storage.delete, keys, before=datetime.max.replace(tzinfo=UTC))


def _part_key(link: Link, number: int, etag: str) -> ObjectKey:
    return part_key(f"{link.repo_id} {link.oid} {number} {etag}")


async def _assemble(storage: ObjectStore, spool: Spool, parts: Sequence[ObjectKey]) -> None:
    for number, key in enumerate(parts, start=1):
        found = await asyncio.to_thread(storage.stat, key)
        if found is None:
            raise InvalidUpload(f"parts: part {number} with this etag was not uploaded.")
        # A thread for each part, so that a large file does not hold one for long.
        await asyncio.to_thread(spool.write_all, storage.pieces(key, 0, found.size))


async def get_content(database: Database, link: Link) -> Content:
    """Return an object's content, when this repository has it."""
    async with database.read() as conn:
        found = await blobs_store.find_contents_in_repo(conn, link.repo_id, [link.oid])
    if link.oid not in found:
        raise ObjectNotFound(link.oid)
    return found[link.oid]


async def _has_object(database: Database, link: Link) -> bool:
    async with database.read() as conn:
        return bool(await blobs_store.find_in_repo(conn, link.repo_id, [link.oid]))


async def _check_repo(database: Database, link: Link) -> None:
    async with database.read() as conn:
        if await store.find(conn, link.repo_id) is None:
            raise ObjectNotFound(link.oid)


def _spool(database: Database, link: Link) -> Spool:
    return open_store(database.hub.settings).new_spool(size=link.size)


async def _fill(spool: Spool, pieces: AsyncIterable[Buffer], *, size: int) -> None:
    """Write an upload to a spool; stop where it becomes longer than was announced."""
    try:
        await fill(spool, pieces, largest=size)
    except FileTooLarge:
        raise _wrong_size(size, "more") from None
    _check_size(spool, size)


def _check_size(spool: Spool, size: int) -> None:
    if spool.size != size:
        raise _wrong_size(size, f"{spool.size}" if spool.size < size else "more")


def _wrong_size(size: int, received: str) -> InvalidUpload:
    return InvalidUpload(f"The upload must have {size} bytes as announced; it has {received}.")


async def _store(database: Database, link: Link, spool: Spool) -> None:
    if spool.sha256 != link.oid:
        raise InvalidUpload(
            f"The bytes must have the SHA-256 {link.oid}; they have {spool.sha256}."
        )
    blob = await asyncio.to_thread(put_blob, open_store(database.hub.settings), spool)
    async with database.transaction() as conn:
        await add_to_repo(conn, link, blob)


async def add_to_repo(conn: Connection, link: Link, blob: Blob) -> None:
    """Add a blob that was just put into the store, and let the repository point to it."""
    # The repository may have been deleted while its file was on the way.
    repo = await store.find(conn, link.repo_id)
    if repo is None:
        raise ObjectNotFound(link.oid)
    await add_blobs(conn, [blob], may_stay_whole=True)
    await blobs_store.link(conn, link.repo_id, [blob], is_used=False)
    await chunker.schedule_cutting(conn)
    await check_quota(conn, repo.owner_id, 0)
