"""Direct uploads: clients send large files to the bucket themselves, and the hub checks them there.

What a client puts there is only claimed to have a digest. It lies under a name of its own until it was
read once and its SHA-256 agrees; then it is copied to its place and gets its row. Nothing serves it
before. Uploads that nobody ended are dropped after two days.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.core.logs import get_logger
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.repos import blobs_store
from hublet.repos.blobs_store import DirectUpload
from hublet.repos.errors import InvalidUpload, ObjectNotFound
from hublet.repos.lfs import service, transfers
from hublet.repos.lfs.links import UPLOAD_LIFE, Link, sign
from hublet.repos.lfs.records import (
    ObjectRefusal,
    ObjectRequest,
    ObjectResponse,
    TransferAction,
    part_size_of,
    part_sizes,
)
from hublet.repos.push import service as push
from hublet.repos.records import RepoAddress, Right
from hublet.storage.contents import LARGEST_STREAMED, digest_object
from hublet.storage.errors import UploadBeingChecked
from hublet.storage.object_store import ObjectKey, ObjectStore, blob_key, open_store
from hublet.storage.records import Blob
from hublet.storage.s3_multipart import LARGEST_PART, MultipartUploads
from hublet.tokens.records import Caller

CHECK = "lfs.check-upload"
# Larger ones are checked by a worker: a request would wait for too long.
LARGEST_CHECKED_AT_ONCE = 1 << 30
GIVEN_UP_AGE = timedelta(days=2)

_KIND = "uploads"
_BATCH = 100

log = get_logger("storage")


async def prepare_uploads(
    database: Database,
    caller: Caller | None,
    address: RepoAddress,
    objects: list[ObjectRequest],
    *,
    in_parts: bool,
    is_direct: bool,
) -> list[ObjectResponse]:
    """Return the same as the batch API's service; large objects go to the bucket, if they may."""
    async with database.read() as conn:
        responses = await service.prepare_uploads(conn, caller, address, objects, in_parts=in_parts)
        repo = await push.get_or_challenge(conn, caller, address, Right.see)
        oids = [each.request.oid for each in responses if each.upload is not None]
        waiting = await blobs_store.list_direct_uploads(conn, repo.id, oids)
    bucket = _bucket(database)
    if bucket is None or not is_direct:
        return responses
    checked = {each.sha256 for each in waiting if each.is_complete}
    return [
        await _offer(database, bucket, repo.id, each, checked, in_parts=in_parts)
        for each in responses
    ]


def _bucket(database: Database) -> MultipartUploads | None:
    settings = database.hub.settings.storage
    if not (settings.redirect and settings.direct_uploads):
        return None
    return open_store(database.hub.settings).multipart_uploads()


async def _offer(
    database: Database,
    bucket: MultipartUploads,
    repo_id: str,
    response: ObjectResponse,
    checked: set[str],
    *,
    in_parts: bool,
) -> ObjectResponse:
    request = response.request
    if response.upload is None or request.size <= LARGEST_STREAMED:
        return response
    if request.oid in checked:
        error = UploadBeingChecked()
        refusal = ObjectRefusal(code=error.status, message=error.message)
        return ObjectResponse(request=request, refusal=refusal)
    sizes = part_sizes(request.size) if in_parts else [request.size]
    if max(sizes) > LARGEST_PART:
        return response
    upload = DirectUpload(
        id=new_object_id(),
        repo_id=repo_id,
        sha256=request.oid,
        size=request.size,
        upload_id="",
        parts=len(sizes),
    )
    upload = replace(upload, upload_id=await bucket.create(_path(upload)))
    async with database.transaction() as conn:
        await blobs_store.add_direct_upload(conn, upload)
    return replace(response, upload=_action(database, bucket, upload))


def _action(database: Database, bucket: MultipartUploads, upload: DirectUpload) -> TransferAction:
    urls = [
        bucket.part_url(_path(upload), upload.upload_id, number, life=UPLOAD_LIFE)
        for number in range(1, upload.parts + 1)
    ]
    if upload.parts == 1:
        # The client sends all of it in one request, and asks to verify it then.
        return TransferAction(href=urls[0])
    complete = Link(
        act="complete",
        repo_id=upload.repo_id,
        oid=upload.sha256,
        size=upload.size,
        part=upload.parts,
        upload=upload.id,
    )
    hub = database.hub
    header = {str(number): url for number, url in enumerate(urls, start=1)}
    return TransferAction(
        href=sign(complete, hub.keys, base_url=hub.settings.base_url),
        header={"chunk_size": str(part_size_of(upload.size))} | header,
    )


async def complete(database: Database, link: Link, etags: Sequence[str]) -> None:
    """Make an object of the parts that a client put into the bucket, and check it."""
    async with database.read() as conn:
        upload = await blobs_store.find_direct_upload(conn, link.upload)
        known = await blobs_store.find_in_repo(conn, link.repo_id, [link.oid])
    if upload is None and link.oid in known:
        # The same request again, because its first response was lost.
        return
    if upload is None:
        raise InvalidUpload("This upload was given up; begin it anew.")
    if len(etags) != upload.parts:
        raise InvalidUpload(f"parts must name each of the {upload.parts} parts once.")
    await _finish(database, upload, etags)


async def verify(
    database: Database, caller: Caller | None, address: RepoAddress, request: ObjectRequest
) -> None:
    """Refuse unless the repository has the object; one that lies in the bucket is checked first."""
    try:
        async with database.read() as conn:
            await service.verify(conn, caller, address, request)
    except ObjectNotFound:
        async with database.read() as conn:
            repo = await push.get_or_challenge(conn, caller, address, Right.see)
            waiting = await blobs_store.list_direct_uploads(conn, repo.id, [request.oid])
        if not waiting:
            raise
        await _finish_any(database, waiting)
        async with database.read() as conn:
            await service.verify(conn, caller, address, request)


async def _finish_any(database: Database, waiting: Sequence[DirectUpload]) -> None:
    """Finish the upload whose parts are there: a client may have begun it several times."""
    bucket = _bucket(database)
    for upload in waiting:
        if upload.is_complete or bucket is None:
            await _finish(database, upload, ())
            return
        etags = await bucket.list_etags(_path(upload), upload.upload_id)
        if len(etags) == upload.parts or await _is_there(database, upload):
            await _finish(database, upload, etags)
            return


async def _finish(database: Database, upload: DirectUpload, etags: Sequence[str]) -> None:
    bucket = _bucket(database)
    if not upload.is_complete:
        if bucket is None:
            raise InvalidUpload("This hub takes no direct uploads any more; begin it anew.")
        is_complete = await bucket.complete(_path(upload), upload.upload_id, etags)
        if not is_complete and not await _is_there(database, upload):
            if await _has_object(database, upload):
                # The same request came twice, and the other was faster.
                return
            raise InvalidUpload("parts: the object storage has not all of them, with these etags.")
        async with database.transaction() as conn:
            await blobs_store.set_direct_upload_complete(conn, upload.id)
    if upload.size > LARGEST_CHECKED_AT_ONCE:
        async with database.transaction() as conn:
            body = f'{{"id": "{upload.id}"}}'
            await add_task(conn, NewTask(kind=CHECK, body=body, key=f"{CHECK}.{upload.id}"))
        raise UploadBeingChecked
    await _check(database, upload)


async def check_upload(database: Database, body: dict[str, Any]) -> None:
    """Check a large upload, in a worker; what is wrong with it is only logged."""
    async with database.read() as conn:
        upload = await blobs_store.find_direct_upload(conn, body["id"])
    if upload is not None:
        try:
            await _check(database, upload)
        except (InvalidUpload, ObjectNotFound) as error:
            log.warning("a direct upload was refused", repo=upload.repo_id, reason=error.message)


async def _check(database: Database, upload: DirectUpload) -> None:
    """Read what a client put into the bucket; copy it to its place if it is what was claimed."""
    store = open_store(database.hub.settings)
    try:
        blob = await asyncio.to_thread(_digest_and_copy, store, upload)
    except FileNotFoundError:
        if await _has_object(database, upload):
            # The same request came twice, and the other was faster.
            return
        blob = None
    if blob is None:
        await _drop(database, upload)
        raise InvalidUpload(
            f"The upload must have {upload.size} bytes with the SHA-256 {upload.sha256}, and has "
            "others; begin it anew."
        )
    link = Link(act="upload", repo_id=upload.repo_id, oid=upload.sha256, size=upload.size)
    async with database.transaction() as conn:
        await transfers.add_to_repo(conn, link, blob)
    await _drop(database, upload)


def _digest_and_copy(store: ObjectStore, upload: DirectUpload) -> Blob | None:
    """Return the blob, copied to its place; None if it is not what was claimed."""
    found = store.stat(_key(upload))
    if found is None:
        raise FileNotFoundError(upload.id)
    if found.size != upload.size:
        return None
    blob = digest_object(store, _key(upload), size=upload.size)
    if blob.sha256 != upload.sha256:
        return None
    store.copy(_key(upload), blob_key(blob.sha256), size=blob.size)
    return blob


async def _is_there(database: Database, upload: DirectUpload) -> bool:
    store = open_store(database.hub.settings)
    return await asyncio.to_thread(store.stat, _key(upload)) is not None


async def _has_object(database: Database, upload: DirectUpload) -> bool:
    async with database.read() as conn:
        return bool(await blobs_store.find_in_repo(conn, upload.repo_id, [upload.sha256]))


async def remove_given_up(database: Database) -> None:
    """Drop uploads that were not ended for two days, with what lies in the bucket of them."""
    before = clock.to_micros(clock.now() - GIVEN_UP_AGE)
    while True:
        async with database.read() as conn:
            old = await blobs_store.list_old_direct_uploads(conn, before=before, limit=_BATCH)
        for upload in old:
            await _drop(database, upload)
        if len(old) < _BATCH:
            return


async def _drop(database: Database, upload: DirectUpload) -> None:
    store = open_store(database.hub.settings)
    bucket = store.multipart_uploads()
    if bucket is not None and not upload.is_complete:
        await bucket.abort(_path(upload), upload.upload_id)
    # Its name is its own: nobody puts it again.
    later = clock.now() - clock.offset() + timedelta(days=1)
    await asyncio.to_thread(store.delete, [_key(upload)], before=later)
    async with database.transaction() as conn:
        await blobs_store.remove_direct_upload(conn, upload.id)


def _key(upload: DirectUpload) -> ObjectKey:
    return ObjectKey(_KIND, upload.id)


def _path(upload: DirectUpload) -> str:
    return f"{_KIND}/{upload.id}"
