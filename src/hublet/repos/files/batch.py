"""Batch of changes to a bucket: parsed line by line, checked as a whole, applied in one transaction."""

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncIterable, Iterable, Sequence
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
from hublet.repos.files.records import File, FileAddition, FileRemoval
from hublet.repos.files.schemas import (
    AddFileOperation,
    CopyFileOperation,
    DeleteFileOperation,
    batch_operation,
)
from hublet.repos.files.uploads import check_media_type, guess_media_type
from hublet.repos.names import check_path
from hublet.repos.records import Repo, RepoAddress, RepoType, Right
from hublet.repos.xet.ingestion import cut_now
from hublet.storage.contents import put_blob
from hublet.storage.object_store import ObjectStore, open_store
from hublet.storage.records import Blob
from hublet.storage.store import add_blobs
from hublet.tokens.records import Caller

MAX_OPERATIONS = 1000
# The contents of a batch are held in memory; larger files are uploaded with PUT.
MAX_BATCH_BYTES = 8 << 20


async def read_batch(chunks: AsyncIterable[bytes]) -> list[FileAddition | FileRemoval]:
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
        sha256=operation.xetHash if operation.sha256 is MISSING else operation.sha256,
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
) -> None:
    """Apply every operation, or raise BatchFailed with those that cannot be applied."""
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.write)
    if failures := _path_failures(operations):
        raise BatchFailed(failures, of=len(operations))
    storage = open_store(database.hub.settings)
    arrived = await asyncio.to_thread(_store_contents, storage, operations)
    await cut_now(database, repo.id, list(arrived.values()))
    async with database.transaction() as conn:
        repo = await repos.get(conn, caller, address, Right.write)
        await add_blobs(conn, arrived.values())
        await _apply(conn, caller, repo, operations, arrived)


def _path_failures(operations: Operations) -> dict[str, str]:
    """Return the reasons, by path, why paths of a batch are not allowed."""
    times = Counter(operation.path for operation in operations)
    failures = {}
    for path, count in times.items():
        try:
            check_path(path)
        except InvalidRequest as error:
            failures[path] = error.message
        else:
            if count > 1:
                failures[path] = "A batch names each path once."
    return failures


def _store_contents(storage: ObjectStore, operations: Operations) -> dict[str, Blob]:
    """Store the contents that came with the batch; return the blobs by path."""
    arrived = {}
    for operation in operations:
        if isinstance(operation, FileAddition) and operation.content is not None:
            with storage.new_spool() as spool:
                spool.write(operation.content)
                arrived[operation.path] = put_blob(storage, spool)
    return arrived


async def _apply(
    conn: Connection,
    caller: Caller,
    repo: Repo,
    operations: Operations,
    arrived: dict[str, Blob],
) -> None:
    referenced = [o for o in operations if isinstance(o, FileAddition) and o.path not in arrived]
    found, failures = await _find_contents(conn, caller, repo, referenced)
    if failures:
        raise BatchFailed(failures, of=len(operations))
    contents, at = arrived | found, now()
    changes = [
        o if isinstance(o, FileRemoval) else _file(o, contents[o.path], at) for o in operations
    ]
    try:
        await service.change_files(conn, caller, repo, changes)
    except PathTakenInBucket as error:
        taken = dict.fromkeys(error.paths, PATH_TAKEN.capitalize())
        raise BatchFailed(taken, of=len(operations)) from None


def _file(addition: FileAddition, content: Blob, at: datetime) -> File:
    return File(
        path=addition.path,
        sha256=content.sha256,
        size=content.size,
        media_type=addition.media_type,
        modified_at=addition.modified_at or at,
        uploaded_at=at,
    )


async def _find_contents(
    conn: Reader, caller: Caller, repo: Repo, additions: Sequence[FileAddition]
) -> tuple[dict[str, Blob], dict[str, str]]:
    """Find contents that the hub has already, in the repositories that the operations name.

    Returns the blobs by path, and by path the reasons why others were not found.
    """
    found: dict[str, Blob] = {}
    failures: dict[str, str] = {}
    for source in dict.fromkeys(addition.source for addition in additions):
        copies = [addition for addition in additions if addition.source == source]
        try:
            holder = repo if source is None else await _get_source(conn, caller, source)
        except (NotFound, NotAllowed) as error:
            named = (
                f"{source.type} {source.full_name}: {error.message}" if source else error.message
            )
            failures |= {addition.path: named for addition in copies}
            continue
        held = await _sizes_held(conn, holder, {a.sha256 for a in copies if a.sha256})
        for addition in copies:
            if addition.sha256 in held:
                content = Blob(sha256=addition.sha256, size=held[addition.sha256])
                found[addition.path] = content
            else:
                failures[addition.path] = _not_held(addition, holder)
    return found, failures


async def _get_source(conn: Reader, caller: Caller, source: RepoAddress) -> Repo:
    return await repos.get(conn, caller, source, Right.read)


async def _sizes_held(conn: Reader, repo: Repo, digests: Iterable[str]) -> dict[str, int]:
    """Return, by digest, the sizes of the contents that a repository has."""
    if not repo.type.has_git:
        return await store.sizes_of(conn, repo.id, digests)
    held = await blobs_store.find_in_repo(conn, repo.id, digests)
    return {sha256: blob.size for sha256, blob in held.items()}


def _not_held(addition: FileAddition, holder: Repo) -> str:
    if addition.sha256 is None:
        return "One of content, sha256 and xetHash is needed."
    return (
        f"{holder.full_name} has no content {addition.sha256}. This hub has no Xet storage: "
        "send the content in base64, or put the file with PUT."
    )
