"""Batch of changes to a bucket: parsed line by line, applied in one transaction as far as it can be."""

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from datetime import datetime

from pydantic import MISSING, ValidationError

from hublet.core.clock import from_micros, now
from hublet.core.database import Connection, Database, Reader
from hublet.core.errors import InvalidRequest, NotAllowed, NotFound
from hublet.core.http.validation import describe_problems
from hublet.repos import blobs_store
from hublet.repos import service as repos
from hublet.repos.errors import (
    PATH_TAKEN,
    BatchFailed,
    BatchTooLarge,
    InvalidBatch,
    PathTakenInBucket,
)
from hublet.repos.files import service, store
from hublet.repos.files.records import (
    NO_CONTENT,
    NO_CONTENT_HASH,
    File,
    FileAddition,
    FileRemoval,
    HeldContent,
)
from hublet.repos.files.schemas import (
    AddFileOperation,
    CopyFileOperation,
    DeleteFileOperation,
    batch_operation,
)
from hublet.repos.files.uploads import add_contents, check_media_type, guess_media_type
from hublet.repos.names import check_path
from hublet.repos.records import Repo, RepoAddress, RepoType, Right
from hublet.repos.xet import store as xet_store
from hublet.repos.xet.ingestion import cut_now
from hublet.storage.chunker import schedule_cutting
from hublet.storage.contents import put_blob
from hublet.storage.object_store import ObjectStore, open_store
from hublet.storage.records import Blob, CutBlob
from hublet.storage.store import add_cut_blobs
from hublet.storage.xorbs import Buffer
from hublet.tokens.records import Caller
from hublet.tokens.service import check_still_reaches

MAX_OPERATIONS = 1000
# The contents of a batch are held in memory; larger files are uploaded with PUT.
MAX_BATCH_BYTES = 8 << 20
_EMPTY = CutBlob(blob=Blob(sha256=NO_CONTENT.sha256, size=0), xet_hash=NO_CONTENT_HASH, segments=())


async def read_batch(chunks: AsyncIterable[Buffer]) -> list[FileAddition | FileRemoval]:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_BATCH_BYTES:
            raise BatchTooLarge(MAX_BATCH_BYTES)
    lines = [(n, line) for n, line in enumerate(body.split(b"\n"), start=1) if line.strip()]
    if not 1 <= len(lines) <= MAX_OPERATIONS:
        raise InvalidBatch(f"A batch must have 1 to {MAX_OPERATIONS} operations, one on each line.")
    return [_read_line(number, line) for number, line in lines]


def _read_line(number: int, line: bytearray) -> FileAddition | FileRemoval:
    try:
        operation = batch_operation.validate_json(line)
        return (
            FileRemoval(path=operation.path)
            if isinstance(operation, DeleteFileOperation)
            else _addition(operation)
        )
    except ValidationError as error:
        raise InvalidBatch(f"Line {number} of the batch: {_problems(error)}") from None
    except InvalidRequest as error:
        raise InvalidBatch(f"Line {number} of the batch: {error.message}") from None


def _problems(error: ValidationError) -> str:
    problems = error.errors()
    if problems[0]["type"].startswith("union_tag"):
        return "type must be addFile, copyFile or deleteFile."
    # The location begins with the type of the operation where that of a request has "body".
    return describe_problems([each | {"loc": ("body", *each["loc"][1:])} for each in problems])


def _addition(operation: AddFileOperation | CopyFileOperation) -> FileAddition:
    media_type = operation.contentType or guess_media_type(operation.path)
    check_media_type(media_type)
    return FileAddition(
        path=operation.path,
        content=_content(operation) if isinstance(operation, AddFileOperation) else None,
        content_hash=operation.xetHash if operation.sha256 is MISSING else operation.sha256,
        source=_source(operation) if isinstance(operation, CopyFileOperation) else None,
        media_type=media_type,
        modified_at=None if operation.mtime is MISSING else from_micros(operation.mtime * 1000),
    )


def _content(operation: AddFileOperation) -> bytes | None:
    if operation.content is MISSING:
        return None
    try:
        return base64.b64decode(operation.content, validate=True)
    except ValueError:
        raise InvalidRequest("content must be base64.") from None


def _source(operation: CopyFileOperation) -> RepoAddress:
    namespace, _, name = operation.sourceRepoId.partition("/")
    return RepoAddress(type=RepoType(operation.sourceRepoType), namespace=namespace, name=name)


Operations = Sequence[FileAddition | FileRemoval]


async def apply_batch(
    database: Database, caller: Caller, address: RepoAddress, operations: Operations
) -> dict[str, str]:
    """Apply the operations that can be applied; return, by path, why the others cannot.

    Raise BatchFailed when none can.
    """
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.write)
    failures = _path_failures(repo, operations)
    arrived = await _store_contents(database, repo, _without(operations, failures))
    while True:
        possible = _without(operations, failures)
        try:
            async with database.transaction() as conn:
                repo = await repos.get(conn, caller, address, Right.write)
                await check_still_reaches(conn, caller, repo.owner_id)
                failures |= await _apply(conn, caller, repo, possible, arrived)
        except PathTakenInBucket as error:
            failures |= dict.fromkeys(error.paths, PATH_TAKEN.capitalize())
        else:
            break
    if not _without(operations, failures):
        raise BatchFailed(failures, of=len(operations))
    return failures


def _without(operations: Operations, failures: Mapping[str, str]) -> Operations:
    return [operation for operation in operations if operation.path not in failures]


def _path_failures(repo: Repo, operations: Operations) -> dict[str, str]:
    """Return the reasons, by path, why paths of a batch are not allowed."""
    times = Counter(operation.path for operation in operations)
    failures = {}
    for path, count in times.items():
        try:
            check_path(path)
            service.check_writable(repo, path)
        except (InvalidRequest, NotAllowed) as error:
            failures[path] = error.message
        else:
            if count > 1:
                failures[path] = "A batch names each path once."
    return failures


async def _store_contents(
    database: Database, repo: Repo, operations: Operations
) -> dict[str, Blob]:
    """Store and cut the contents that came with the batch; return the blobs by path."""
    contents = {
        operation.path: operation.content
        for operation in operations
        if isinstance(operation, FileAddition) and operation.content is not None
    }
    storage = open_store(database.hub.settings)
    blobs = await asyncio.to_thread(_put_blobs, storage, contents.values())
    await cut_now(database, repo.id, blobs)
    return dict(zip(contents, blobs, strict=True))


def _put_blobs(storage: ObjectStore, contents: Iterable[bytes]) -> list[Blob]:
    blobs = []
    for content in contents:
        with storage.new_spool() as spool:
            spool.write(content)
            blobs.append(put_blob(storage, spool))
    return blobs


async def _apply(
    conn: Connection,
    caller: Caller,
    repo: Repo,
    operations: Operations,
    arrived: Mapping[str, Blob],
) -> dict[str, str]:
    """Apply what can be applied; return, by path, why contents were not found."""
    referenced = [o for o in operations if isinstance(o, FileAddition) and o.path not in arrived]
    found, failures = await _find_contents(conn, caller, repo, referenced)
    added = await add_contents(conn, repo.id, list(arrived.values()))
    contents, at = dict(zip(arrived, added, strict=True)) | found, now()
    if NO_CONTENT in contents.values():
        await add_cut_blobs(conn, [_EMPTY])
        await xet_store.add_files(conn, repo.id, [_EMPTY])
    await _copy_layouts(conn, repo, found.values())
    changes = [
        o if isinstance(o, FileRemoval) else _file(o, contents[o.path], at)
        for o in _without(operations, failures)
    ]
    if changes:
        await service.change_files(conn, caller, repo, changes)
    return failures


async def _copy_layouts(conn: Connection, repo: Repo, contents: Iterable[HeldContent]) -> None:
    """Let a bucket see contents that it copies from others as those see them."""
    copied: dict[str, list[str]] = {}
    for each in contents:
        if each.holder_id is not None and each.holder_id != repo.id:
            copied.setdefault(each.holder_id, []).append(each.sha256)
    for holder_id, digests in copied.items():
        await blobs_store.copy_layouts(conn, repo.id, digests, source_id=holder_id)
        await blobs_store.add_uncut(conn, repo.id, digests)
        await schedule_cutting(conn)


def _file(addition: FileAddition, content: HeldContent, at: datetime) -> File:
    return File(
        path=addition.path,
        sha256=content.sha256,
        size=content.size,
        xet_hash=content.xet_hash,
        media_type=addition.media_type,
        modified_at=addition.modified_at or at,
        uploaded_at=at,
    )


async def _find_contents(
    conn: Reader, caller: Caller, repo: Repo, additions: Sequence[FileAddition]
) -> tuple[dict[str, HeldContent], dict[str, str]]:
    """Find contents that the hub has already, in the repositories that the operations name.

    Returns the contents by path, and by path the reasons why others were not found.
    """
    found: dict[str, HeldContent] = {}
    failures: dict[str, str] = {}
    for source in dict.fromkeys(addition.source for addition in additions):
        copies = [addition for addition in additions if addition.source == source]
        try:
            held = await _find_held(conn, caller, repo, source, copies)
        except (NotFound, NotAllowed) as error:
            named = (
                f"{source.type} {source.full_name}: {error.message}" if source else error.message
            )
            failures |= {addition.path: named for addition in copies}
            continue
        for addition in copies:
            if addition.content_hash in held:
                found[addition.path] = held[addition.content_hash]
            else:
                failures[addition.path] = _not_held(addition, repo)
    return found, failures


async def _find_held(
    conn: Reader,
    caller: Caller,
    repo: Repo,
    source: RepoAddress | None,
    additions: Sequence[FileAddition],
) -> dict[str, HeldContent]:
    """Return, by hash, the contents that the source of some additions has now.

    Without a source it is the repository itself: what was uploaded to it counts too.
    """
    holder = repo if source is None else await repos.get(conn, caller, source, Right.read)
    hashes = {addition.content_hash for addition in additions if addition.content_hash}
    held = await store.find_held(conn, holder.id, hashes, with_uploads=source is None)
    return {NO_CONTENT_HASH: NO_CONTENT, **held}


def _not_held(addition: FileAddition, repo: Repo) -> str:
    """Say the same whether or not other repositories have the content."""
    if addition.content_hash is None:
        return "One of content, sha256 and xetHash is needed."
    if addition.source is None:
        return (
            f"{repo.full_name} has no content {addition.content_hash}: upload it by Xet first, "
            "send it in base64, or put the file with PUT."
        )
    source = addition.source
    return f"{source.type} {source.full_name} has no content {addition.content_hash} now."
