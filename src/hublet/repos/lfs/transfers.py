"""LFS transfers: the bytes of large files, checked before they are kept."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

from hublet.core.database import Connection, Database
from hublet.repos import blobs_store as blobs
from hublet.repos import store as repos
from hublet.repos.blobs import Spool, blob_path, parts_folder
from hublet.repos.errors import (
    ContentMismatch,
    InvalidParts,
    ObjectNotFound,
    PartMissing,
    UploadIncomplete,
    WrongOid,
)
from hublet.repos.lfs.links import Link
from hublet.repos.lfs.schemas import CompletedPart, CompleteUpload
from hublet.repos.records import Blob

# What arrives in small pieces goes to the disk in larger ones.
_CHUNK = 1 << 20


async def receive(database: Database, link: Link, pieces: AsyncIterator[bytes]) -> None:
    """Keep an object that arrives in one piece."""
    await _check_repo(database, link)
    spool = await asyncio.to_thread(_spool, database, link)
    try:
        await _fill(spool, pieces, size=link.size)
        await _keep(database, link, spool)
    finally:
        await asyncio.to_thread(spool.close)


async def receive_part(database: Database, link: Link, pieces: AsyncIterator[bytes]) -> str:
    """Put a part aside until all are here; return what it must be called then.

    The same part may come again. Whoever puts the parts together says which one is meant.
    """
    await _check_repo(database, link)
    spool = await asyncio.to_thread(Spool, database.hub.settings.database.data_dir)
    try:
        await _fill(spool, pieces, size=link.size)
        etag = spool.sha256
        await asyncio.to_thread(spool.move_to, _folder_of(database, link) / f"{link.part}-{etag}")
    finally:
        await asyncio.to_thread(spool.close)
    return etag


async def complete(database: Database, link: Link, body: CompleteUpload) -> None:
    """Put an object together from its parts, and keep it."""
    if body.oid != link.oid:
        raise WrongOid
    if [part.partNumber for part in body.parts] != list(range(1, link.part + 1)):
        raise InvalidParts(link.part)
    await _check_repo(database, link)
    if await _is_here(database, link):
        # The same request again, whose first answer was lost.
        return
    folder = _folder_of(database, link)
    spool = await asyncio.to_thread(_spool, database, link)
    try:
        await _assemble(spool, folder, body.parts)
        if spool.size != link.size:
            raise UploadIncomplete(size=link.size, received=spool.size)
        await _keep(database, link, spool)
    finally:
        await asyncio.to_thread(spool.close)
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _assemble(spool: Spool, folder: Path, parts: Sequence[CompletedPart]) -> None:
    for part in parts:
        etag = part.etag.strip('"')
        path = folder / f"{part.partNumber}-{etag}"
        try:
            # One thread's work for each part, so that a large file leaves room for others.
            await asyncio.to_thread(spool.write_file, path)
        except FileNotFoundError:
            raise PartMissing(part.partNumber) from None


async def get_path(database: Database, link: Link) -> Path:
    """Return where the bytes of an object lie that this repository has."""
    if not await _is_here(database, link):
        raise ObjectNotFound(link.oid)
    return blob_path(database.hub.settings.database.data_dir, link.oid)


async def _is_here(database: Database, link: Link) -> bool:
    async with database.read() as conn:
        return bool(await blobs.find_in_repo(conn, link.repo_id, [link.oid]))


async def _check_repo(database: Database, link: Link) -> None:
    async with database.read() as conn:
        if await repos.find(conn, link.repo_id) is None:
            raise ObjectNotFound(link.oid)


def _spool(database: Database, link: Link) -> Spool:
    return Spool(database.hub.settings.database.data_dir, size=link.size)


def _folder_of(database: Database, link: Link) -> Path:
    return parts_folder(database.hub.settings.database.data_dir) / f"{link.repo_id}-{link.oid}"


async def _fill(spool: Spool, pieces: AsyncIterator[bytes], *, size: int) -> None:
    """Write what arrives; stop where it becomes more than was announced."""
    waiting: list[bytes] = []
    received = written = 0
    async for piece in pieces:
        received += len(piece)
        if received > size:
            raise UploadIncomplete(size=size, received=received)
        waiting.append(piece)
        if received - written >= _CHUNK:
            await asyncio.to_thread(_write, spool, waiting)
            waiting, written = [], received
    await asyncio.to_thread(_write, spool, waiting)
    if received != size:
        raise UploadIncomplete(size=size, received=received)


def _write(spool: Spool, pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        spool.write(piece)


async def _keep(database: Database, link: Link, spool: Spool) -> None:
    if spool.sha256 != link.oid:
        raise ContentMismatch(link.oid, found=spool.sha256)
    blob = await asyncio.to_thread(spool.keep)
    async with database.transaction() as conn:
        await _add_to_repo(conn, link, blob)


async def _add_to_repo(conn: Connection, link: Link, blob: Blob) -> None:
    # The repository may have been deleted while its file was on the way.
    if await repos.find(conn, link.repo_id) is None:
        raise ObjectNotFound(link.oid)
    await blobs.add(conn, [blob])
    await blobs.link(conn, link.repo_id, [blob.sha256])
