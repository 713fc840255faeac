"""Batch of changes: read line by line, checked as a whole, then done in one transaction."""

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncIterable, Iterable, Sequence
from datetime import datetime
from pathlib import Path

from pydantic import MISSING, ValidationError

from hublet.core.clock import from_micros, now
from hublet.core.database import Connection, Database, Reader
from hublet.core.errors import InvalidRequest, NotAllowed, NotFound
from hublet.core.http.validation import describe_problems
from hublet.repos import blobs_store as blobs
from hublet.repos import service as repos
from hublet.repos.blobs import Spool
from hublet.repos.errors import (
    PATH_TAKEN,
    BatchFailed,
    BatchFailure,
    BatchTooLarge,
    InvalidBatchLine,
    PathTakenInBucket,
    TooManyOperations,
)
from hublet.repos.files import service, store
from hublet.repos.files.records import File, FileAddition, FileRemoval
from hublet.repos.files.schemas import (
    AddFileOperation,
    CopyFileOperation,
    DeleteFileOperation,
    batch_operation,
)
from hublet.repos.files.uploads import check_media_type, media_type_of
from hublet.repos.names import check_path
from hublet.repos.records import Blob, Repo, RepoAddress, RepoType, Right
from hublet.tokens.records import Caller

MAX_OPERATIONS = 1000
# What the contents of a batch may take in memory; a file that is larger goes by PUT.
MAX_BATCH_BYTES = 8 << 20


async def read_batch(chunks: AsyncIterable[bytes]) -> list[FileAddition | FileRemoval]:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_BATCH_BYTES:
            raise BatchTooLarge(MAX_BATCH_BYTES)
    lines = [(n, line) for n, line in enumerate(body.split(b"\n"), start=1) if line.strip()]
    if not 1 <= len(lines) <= MAX_OPERATIONS:
        raise TooManyOperations(MAX_OPERATIONS)
    return [_read_line(number, line) for number, line in lines]


def _read_line(number: int, line: bytearray) -> FileAddition | FileRemoval:
    try:
        found = batch_operation.validate_json(line)
        return (
            FileRemoval(path=found.path)
            if isinstance(found, DeleteFileOperation)
            else _addition(found)
        )
    except ValidationError as error:
        raise InvalidBatchLine(number, _problems(error)) from None
    except InvalidRequest as error:
        raise InvalidBatchLine(number, error.message) from None


def _problems(error: ValidationError) -> str:
    found = error.errors()
    if found[0]["type"].startswith("union_tag"):
        return "type must be addFile, copyFile or deleteFile."
    # The first step of a place is the type of the operation, where a request has its body.
    return describe_problems([each | {"loc": ("body", *each["loc"][1:])} for each in found])


def _addition(found: AddFileOperation | CopyFileOperation) -> FileAddition:
    media_type = found.contentType or media_type_of(found.path)
    check_media_type(media_type)
    return FileAddition(
        path=found.path,
        content=_content(found) if isinstance(found, AddFileOperation) else None,
        sha256=found.xetHash if found.sha256 is MISSING else found.sha256,
        source=_source(found) if isinstance(found, CopyFileOperation) else None,
        media_type=media_type,
        modified_at=None if found.mtime is MISSING else from_micros(found.mtime * 1000),
    )


def _content(found: AddFileOperation) -> bytes | None:
    if found.content is MISSING:
        return None
    try:
        return base64.b64decode(found.content, validate=True)
    except ValueError:
        raise InvalidRequest("content must be base64.") from None


def _source(found: CopyFileOperation) -> RepoAddress:
    namespace, _, name = found.sourceRepoId.partition("/")
    return RepoAddress(type=RepoType(found.sourceRepoType), namespace=namespace, name=name)


Operations = Sequence[FileAddition | FileRemoval]


async def apply_batch(
    database: Database, caller: Caller, address: RepoAddress, operations: Operations
) -> None:
    """Do every operation, or raise BatchFailed with those that cannot be done."""
    async with database.read() as conn:
        await repos.get(conn, caller, address, Right.write)
    if failures := _path_failures(operations):
        raise BatchFailed(failures, of=len(operations))
    data_dir = database.hub.settings.database.data_dir
    arrived = await asyncio.to_thread(_keep_contents, data_dir, operations)
    async with database.transaction() as conn:
        repo = await repos.get(conn, caller, address, Right.write)
        await blobs.add(conn, arrived.values())
        await _apply(conn, caller, repo, operations, arrived)


def _path_failures(operations: Operations) -> list[BatchFailure]:
    times = Counter(operation.path for operation in operations)
    failures = []
    for path, count in times.items():
        try:
            check_path(path)
        except InvalidRequest as error:
            failures.append(BatchFailure(path=path, error=error.message))
        else:
            if count > 1:
                failures.append(BatchFailure(path=path, error="A batch names each path once."))
    return failures


def _keep_contents(data_dir: Path, operations: Operations) -> dict[str, Blob]:
    """Write down the contents that came along; return them by the path of their file."""
    arrived = {}
    for operation in operations:
        if isinstance(operation, FileAddition) and operation.content is not None:
            with Spool(data_dir) as spool:
                spool.write(operation.content)
                arrived[operation.path] = spool.keep()
    return arrived


async def _apply(
    conn: Connection,
    caller: Caller,
    repo: Repo,
    operations: Operations,
    arrived: dict[str, Blob],
) -> None:
    borrowed = [o for o in operations if isinstance(o, FileAddition) and o.path not in arrived]
    found, failures = await _find_contents(conn, caller, repo, borrowed)
    if failures:
        raise BatchFailed(failures, of=len(operations))
    contents, at = arrived | found, now()
    changes = [
        o if isinstance(o, FileRemoval) else _file(o, contents[o.path], at) for o in operations
    ]
    try:
        await service.change_files(conn, caller, repo, changes)
    except PathTakenInBucket as error:
        taken = [BatchFailure(path=path, error=PATH_TAKEN.capitalize()) for path in error.paths]
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
) -> tuple[dict[str, Blob], list[BatchFailure]]:
    """Look for what the hub is said to have already, in the repositories that are named."""
    found: dict[str, Blob] = {}
    failures: list[BatchFailure] = []
    for source in dict.fromkeys(addition.source for addition in additions):
        wanted = [addition for addition in additions if addition.source == source]
        try:
            holder = repo if source is None else await _get_source(conn, caller, source)
        except (NotFound, NotAllowed) as error:
            failures += [BatchFailure(path=a.path, error=error.message) for a in wanted]
            continue
        held = await _sizes_held(conn, holder, {a.sha256 for a in wanted if a.sha256})
        for addition in wanted:
            if addition.sha256 in held:
                content = Blob(sha256=addition.sha256, size=held[addition.sha256])
                found[addition.path] = content
            else:
                failures.append(BatchFailure(path=addition.path, error=_not_held(addition, holder)))
    return found, failures


async def _get_source(conn: Reader, caller: Caller, source: RepoAddress) -> Repo:
    return await repos.get(conn, caller, source, Right.read)


async def _sizes_held(conn: Reader, repo: Repo, digests: Iterable[str]) -> dict[str, int]:
    """Return, by digest, the sizes of the contents that a repository has."""
    if not repo.type.has_git:
        return await store.sizes_of(conn, repo.id, digests)
    held = await blobs.find_in_repo(conn, repo.id, digests)
    return {sha256: blob.size for sha256, blob in held.items()}


def _not_held(addition: FileAddition, holder: Repo) -> str:
    if addition.sha256 is None:
        return "One of content, sha256 and xetHash is needed."
    return (
        f"{holder.full_name} has no content {addition.sha256}. This hub has no Xet storage: "
        "send the content in base64, or put the file with PUT."
    )
