"""Upload of a file to a bucket: media type and digests, then the blob, its chunks, then the row."""

import asyncio
import base64
import mimetypes
import re
from collections.abc import AsyncIterable, Sequence

from hublet.core.clock import now
from hublet.core.database import Connection, Database
from hublet.repos import blobs_store
from hublet.repos import service as repos
from hublet.repos.errors import ConditionFailed, InvalidUpload
from hublet.repos.files import service, store
from hublet.repos.files.records import File, HeldContent, Upload
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.repos.usage import check_quota
from hublet.repos.xet.ingestion import cut_now
from hublet.storage.contents import put_blob, spool_upload
from hublet.storage.object_store import open_store
from hublet.storage.records import Blob
from hublet.storage.store import add_blobs
from hublet.storage.xorbs import Buffer
from hublet.tokens.records import Caller
from hublet.tokens.service import check_still_reaches

UNKNOWN_MEDIA_TYPE = "application/octet-stream"

_LONGEST_MEDIA_TYPE = 255
_SHA256_BYTES = 32
_WORD = r"[A-Za-z0-9!#$&^_.+-]+"
_MEDIA_TYPE = re.compile(rf"{_WORD}/{_WORD}(\s*;[\x20-\x7e]*)?")
# Without the files of the machine, which differ from one to the next.
_known_types = mimetypes.MimeTypes()


def check_media_type(text: str) -> None:
    """Refuse a media type that could not be sent in a header."""
    if len(text) > _LONGEST_MEDIA_TYPE or _MEDIA_TYPE.fullmatch(text) is None:
        raise InvalidUpload("Content-Type must be a media type such as text/plain.")


def guess_media_type(path: str) -> str:
    """Guess the media type of a file from its name."""
    guessed, encoding = _known_types.guess_type(path.rpartition("/")[2])
    # A compressed text is no text for a client.
    return UNKNOWN_MEDIA_TYPE if guessed is None or encoding is not None else guessed


def announced_digests(
    *, x_content_sha256: str | None, digest: str | None
) -> tuple[tuple[str, str], ...]:
    """Return pairs of a header and the SHA-256 that it announces; other digests are skipped."""
    digests = [] if x_content_sha256 is None else [("X-Content-Sha256", x_content_sha256.lower())]
    for part in (digest or "").split(","):
        algorithm, _, value = part.strip().partition("=")
        if algorithm.lower() == "sha-256":
            digests.append(("Digest", _from_base64(value)))
    return tuple(digests)


def _from_base64(value: str) -> str:
    # RFC 3230 writes the value bare, RFC 9530 between colons.
    try:
        octets = base64.b64decode(value.strip(":"), validate=True)
    except ValueError:
        octets = b""
    if len(octets) != _SHA256_BYTES:
        raise InvalidUpload("Digest must be written sha-256= and 32 bytes in base64.")
    return octets.hex()


def check_digests(upload: Upload, *, sha256: str) -> None:
    for header, announced in upload.digests:
        if announced != sha256:
            raise InvalidUpload(
                f"{header} is not the digest of the body that arrived; send it again."
            )


async def put_file(
    database: Database,
    caller: Caller,
    address: RepoAddress,
    upload: Upload,
    content: AsyncIterable[Buffer],
) -> File:
    """Store a file; no transaction is open while its bytes arrive."""
    repo = await _check_before(database, caller, address, upload)
    limit = database.hub.settings.limits.file_bytes
    storage = open_store(database.hub.settings)
    async with spool_upload(storage, content, largest=limit) as spool:
        check_digests(upload, sha256=spool.sha256)
        blob = await asyncio.to_thread(put_blob, storage, spool)
    await cut_now(database, repo.id, [blob])
    async with database.transaction() as conn:
        repo = await repos.get(conn, caller, address, Right.write)
        await check_still_reaches(conn, caller, repo.owner_id)
        [held] = await add_contents(conn, repo.id, [blob])
        file = _file(upload, held)
        await service.change_files(conn, caller, repo, [file], on=upload.condition)
    return file


async def _check_before(
    database: Database, caller: Caller, address: RepoAddress, upload: Upload
) -> Repo:
    """Check rights, condition and quota before anything large is sent; return the bucket."""
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.write)
        service.check_writable(repo, upload.path)
        before = await store.find(conn, repo.id, upload.path)
        if not upload.condition.holds(before):
            raise ConditionFailed(upload.path)
        growth = (upload.size or 0) - (before.size if before else 0)
        if growth > 0:
            await check_quota(conn, repo.owner_id, growth)
    return repo


async def add_contents(conn: Connection, repo_id: str, blobs: Sequence[Blob]) -> list[HeldContent]:
    """Add blobs that were stored, and cut in a repository; return them with their file hashes."""
    await add_blobs(conn, blobs)
    digests = [blob.sha256 for blob in blobs]
    # What could not be cut is cut later.
    await blobs_store.add_uncut(conn, repo_id, digests)
    hashes = await blobs_store.find_xet_hashes(conn, repo_id, digests)
    return [
        HeldContent(sha256=blob.sha256, size=blob.size, xet_hash=hashes.get(blob.sha256))
        for blob in blobs
    ]


def _file(upload: Upload, content: HeldContent) -> File:
    at = now()
    return File(
        path=upload.path,
        sha256=content.sha256,
        size=content.size,
        xet_hash=content.xet_hash,
        media_type=upload.media_type,
        modified_at=upload.modified_at or at,
        uploaded_at=at,
    )
