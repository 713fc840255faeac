"""Uploads of blobs: sessions that every node can go on with, and what completes them.

Each request's bytes become one object of the store and one row, so nothing of a session lies in the
memory of a process. A session has one writer: of two that send at once, the second to end is refused,
because what it sent does not follow any more.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterable, Iterable, Sequence

from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.ids import random_text
from hublet.registry import service, uploads_store
from hublet.registry.errors import (
    DigestMismatch,
    InvalidUploadSize,
    UploadNotFound,
    UploadRangeInvalid,
)
from hublet.registry.records import ImageKey, Upload, UploadPart
from hublet.repos.records import Repo
from hublet.repos.usage import check_quota
from hublet.storage.contents import put_blob
from hublet.storage.object_store import (
    NEVER,
    ObjectKey,
    ObjectStore,
    blob_key,
    layer_part_key,
    open_store,
)
from hublet.storage.records import Blob
from hublet.storage.spools import Spool, fill
from hublet.storage.store import add_blobs

_ID_LENGTH = 32
_ID_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
# RFC 9110 has another form: here there is neither a unit nor a total.
_CONTENT_RANGE = re.compile(r"(?:bytes[ =])?(\d{1,18})-(\d{1,18})(?:/(?:\d{1,18}|\*))?")


class BodyBroken(Exception):
    """The client went away before its body ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadBody:
    """The body of a request, and what its headers say of it."""

    # Raises BodyBroken when the client goes away.
    pieces: AsyncIterable[bytes]
    content_range: str | None = None
    # None: the request does not say.
    length: int | None = None


async def begin(conn: Connection, image: ImageKey, *, user_id: str) -> Upload:
    """Begin an upload to an image."""
    upload = Upload(id=random_text(_ID_LENGTH, _ID_LETTERS), image=image, user_id=user_id, size=0)
    await uploads_store.add(conn, upload)
    return upload


async def get(conn: Reader, image: ImageKey, upload_id: str, *, user_id: str) -> Upload:
    """Return the upload to this image that this user began."""
    upload = await uploads_store.find(conn, upload_id)
    if upload is None or (upload.image, upload.user_id) != (image, user_id):
        raise UploadNotFound
    return upload


async def append(database: Database, repo: Repo, upload: Upload, body: UploadBody) -> int:
    """Add a body to an upload; return how many bytes it has now.

    What arrived from a client that went away stays: it asks how far it came.
    """
    announced = _check_range(upload, body)
    await _check_announced(database, repo, announced)
    objects = open_store(database.hub.settings)
    spool = await asyncio.to_thread(objects.new_spool)
    try:
        is_broken = await _receive(spool, body, room=_room(database, upload))
        if not is_broken:
            _check_length(spool.size, announced)
        if spool.size:
            await _add_part(database, repo, upload, objects, spool)
    finally:
        await asyncio.shield(asyncio.to_thread(spool.close))
    return upload.size + spool.size


async def _receive(spool: Spool, body: UploadBody, *, room: int) -> bool:
    """Write a body to a spool; tell whether it broke off."""
    try:
        await fill(spool, body.pieces, largest=room)
    except BodyBroken:
        return True
    return False


def _room(database: Database, upload: Upload) -> int:
    return max(database.hub.settings.limits.file_bytes - upload.size, 0)


def _check_range(upload: Upload, body: UploadBody) -> int | None:
    """Check that a chunk follows what has arrived; return how many bytes it is to have."""
    if body.content_range is None:
        return body.length
    match = _CONTENT_RANGE.fullmatch(body.content_range.strip())
    if match is None:
        raise UploadRangeInvalid("Content-Range must be two positions, as in 0-999.")
    first, last = int(match[1]), int(match[2])
    if first != upload.size:
        raise _does_not_follow(upload)
    if last + 1 < first or (body.length is not None and last + 1 - first != body.length):
        raise InvalidUploadSize(
            "Content-Range must name as many bytes as the body has by its Content-Length."
        )
    return last + 1 - first


def _does_not_follow(upload: Upload) -> UploadRangeInvalid:
    return UploadRangeInvalid(
        f"The upload has {upload.size} bytes, and the next chunk must begin there.",
        headers=session_headers(upload.id, upload.size),
    )


def session_headers(upload_id: str, size: int) -> dict[str, str]:
    """Return what tells how far an upload came; clients trip over `0--1`."""
    return {"Docker-Upload-UUID": upload_id, "Range": f"0-{max(size - 1, 0)}"}


def _check_length(size: int, announced: int | None) -> None:
    if announced is not None and size != announced:
        raise InvalidUploadSize(f"The body has {size} bytes, and {announced} were announced.")


async def _add_part(
    database: Database, repo: Repo, upload: Upload, objects: ObjectStore, spool: Spool
) -> None:
    part = UploadPart(
        upload_id=upload.id, position=upload.size, size=spool.size, sha256=spool.sha256
    )
    await asyncio.to_thread(objects.put, _key(part), spool, durable=False)
    async with database.transaction() as conn:
        is_next = await uploads_store.advance(conn, part)
        if is_next:
            # All that is on the way counts.
            await check_quota(conn, repo.owner_id, 0)
    if is_next:
        return
    async with database.read() as conn:
        known = await uploads_store.list_parts(conn, upload.id)
        newer = await uploads_store.find(conn, upload.id)
    if part not in known:
        await asyncio.to_thread(objects.delete, [_key(part)], before=NEVER)
    if newer is None:
        raise UploadNotFound
    raise _does_not_follow(newer)


async def _check_announced(database: Database, repo: Repo, size: int | None) -> None:
    """Refuse a body before it is sent, where its size is known and there is no room for it."""
    if size and database.hub.settings.limits.owner_bytes is not None:
        async with database.read() as conn:
            await check_quota(conn, repo.owner_id, size)


def _key(part: UploadPart) -> ObjectKey:
    return layer_part_key(part.upload_id, position=part.position, sha256=part.sha256)


async def complete(
    database: Database, repo: Repo, upload: Upload, digest: str, body: UploadBody
) -> None:
    """Make a blob of an upload and the last body, which may be empty or all of it.

    An upload with another digest than announced is over, as nobody can tell what of it is wrong.
    """
    announced = _check_range(upload, body)
    await _check_announced(database, repo, announced)
    objects = open_store(database.hub.settings)
    async with database.read() as conn:
        known = await uploads_store.list_parts(conn, upload.id)
    # Whatever another request added since then is found at the end.
    parts = [part for part in known if part.position < upload.size]
    spool = await asyncio.to_thread(objects.new_spool)
    try:
        if await _receive(spool, body, room=_room(database, upload)):
            raise InvalidUploadSize("The body broke off before its end; nothing of it was kept.")
        _check_length(spool.size, announced)
        content = await asyncio.to_thread(_put, objects, parts, spool, digest)
    except DigestMismatch:
        await cancel(database, upload)
        raise
    except FileNotFoundError:
        # Its parts are gone: another request completed it, or it was given up.
        await cancel(database, upload)
        raise UploadNotFound from None
    finally:
        await asyncio.shield(asyncio.to_thread(spool.close))
    async with database.transaction() as conn:
        if not await uploads_store.remove(conn, upload.id, size=upload.size):
            raise UploadRangeInvalid("More arrived for this upload while it was completed.")
        await add_blobs(conn, [content], may_stay_whole=True)
        await service.add_blob(conn, repo, upload.image, digest=digest, content=content)
    await asyncio.to_thread(objects.delete, [_key(part) for part in parts], before=NEVER)


async def receive(
    database: Database, repo: Repo, image: ImageKey, digest: str, body: UploadBody
) -> None:
    """Store a blob that comes whole with one request."""
    await _check_announced(database, repo, body.length)
    objects = open_store(database.hub.settings)
    spool = await asyncio.to_thread(objects.new_spool)
    try:
        largest = database.hub.settings.limits.file_bytes
        if await _receive(spool, body, room=largest):
            raise InvalidUploadSize("The body broke off before its end; nothing of it was kept.")
        content = await asyncio.to_thread(_put, objects, [], spool, digest)
    finally:
        await asyncio.shield(asyncio.to_thread(spool.close))
    async with database.transaction() as conn:
        await add_blobs(conn, [content], may_stay_whole=True)
        await service.add_blob(conn, repo, image, digest=digest, content=content)


async def cancel(database: Database, upload: Upload, *, if_unchanged: bool = False) -> bool:
    """Give an upload up, and all that arrived for it; False when it is over, or went on."""
    size = upload.size if if_unchanged else None
    async with database.transaction() as conn:
        parts = await uploads_store.list_parts(conn, upload.id)
        is_removed = await uploads_store.remove(conn, upload.id, size=size)
    if is_removed:
        objects = open_store(database.hub.settings)
        await asyncio.to_thread(objects.delete, [_key(part) for part in parts], before=NEVER)
    return is_removed


def _put(objects: ObjectStore, parts: Sequence[UploadPart], last: Spool, digest: str) -> Blob:
    """Put parts and what came last into the store as one blob; raise unless they have the digest."""
    if not parts:
        _check_digest(digest, last.sha256, last.pieces())
        return put_blob(objects, last)
    if len(parts) == 1 and not last.size:
        [part] = parts
        _check_digest(digest, part.sha256, objects.pieces(_key(part), 0, part.size))
        objects.copy(_key(part), blob_key(part.sha256), size=part.size)
        return Blob(sha256=part.sha256, size=part.size)
    with objects.new_spool() as spool:
        for part in parts:
            spool.write_all(objects.pieces(_key(part), 0, part.size))
        spool.write_all(last.pieces())
        _check_digest(digest, spool.sha256, spool.pieces())
        return put_blob(objects, spool)


def _check_digest(digest: str, sha256: str, pieces: Iterable[bytes]) -> None:
    """Compare with what was computed on the way; another algorithm takes reading once more."""
    algorithm, _, _ = digest.partition(":")
    found = f"sha256:{sha256}"
    if algorithm != "sha256":
        hasher = hashlib.new(algorithm)
        for piece in pieces:
            hasher.update(piece)
        found = f"{algorithm}:{hasher.hexdigest()}"
    if found != digest:
        raise DigestMismatch(expected=digest, found=found)
