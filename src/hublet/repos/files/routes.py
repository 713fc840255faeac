"""HTTP for the files of buckets, one by one and in batches, and the same for containers."""

from typing import Any
from urllib.parse import quote

from fastapi import Request
from starlette.responses import Response

from hublet.core.database import Database, Reader
from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.http.exchange import allow_streaming
from hublet.core.http.file_responses import (
    FILE_OR_INFO_RESPONSES,
    blob_response,
    file_info_response,
)
from hublet.core.http.paging import PAGED_RESPONSES, Page
from hublet.core.schema import Done
from hublet.repos import service as repos
from hublet.repos.auth import (
    BUCKET,
    BUCKET_PAGE,
    MOVED,
    Downloader,
    FilesRepo,
    body_of,
    mirror_for_containers,
)
from hublet.repos.files import batch, service, store, uploads
from hublet.repos.files.auth import RequestedCondition, RequestedUpload, TreePage
from hublet.repos.files.batch import read_batch
from hublet.repos.files.records import FileOrFolder, FileRemoval, Folder
from hublet.repos.files.schemas import (
    AskedPaths,
    BatchDone,
    BatchRefused,
    BucketEntry,
    BucketFile,
    FailedOperation,
    bucket_entry,
)
from hublet.repos.files.uploads import UNKNOWN_MEDIA_TYPE
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.repos.xet.addresses import linked_headers, xet_headers
from hublet.tokens.auth import AnyCaller, MaybeCaller
from hublet.tokens.records import Caller

bucket_files = Router(tags=["buckets"], responses=MOVED)

allow_streaming("PUT", r"/api/(buckets|containers)/[^/]+/[^/]+/files/.*")
allow_streaming("POST", r"/api/(buckets|containers)/[^/]+/[^/]+/batch")

Responses = dict[int | str, dict[str, Any]]
_CHANGED: Responses = {
    409: {"description": "The path is a folder, or leads through a file."},
    412: {"description": "`If-Match` or `If-None-Match` does not hold."},
}
_TAKES_A_FILE = {
    "requestBody": {
        "required": True,
        "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_TAKES_LINES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
    }
}


@bucket_files.put(f"{BUCKET}/files/{{path:path}}", responses=_CHANGED, openapi_extra=_TAKES_A_FILE)
async def put_bucket_file(
    request: Request, database: Db, caller: AnyCaller, address: FilesRepo, upload: RequestedUpload
) -> BucketFile:
    """Put a file into a bucket; its bytes are the body, its `Content-Type` is kept."""
    file = await uploads.put_file(database, caller, address, upload, body_of(request))
    return BucketFile.of(file)


@bucket_files.delete(f"{BUCKET}/files/{{path:path}}", responses=_CHANGED)
async def delete_bucket_file(
    conn: Conn, caller: AnyCaller, address: FilesRepo, path: str, condition: RequestedCondition
) -> Done:
    """Delete a file of a bucket."""
    repo = await repos.get(conn, caller, address, Right.write)
    file = await service.get(conn, repo, path)
    await service.change_files(conn, caller, repo, [FileRemoval(path=file.path)], on=condition)
    return Done()


@bucket_files.get(
    f"{BUCKET}/files/{{path:path}}", response_class=Response, responses=FILE_OR_INFO_RESPONSES
)
async def get_bucket_file(
    request: Request, database: Db, caller: MaybeCaller, address: FilesRepo, path: str
) -> Response:
    """Download a file of a bucket, whole or in part."""
    return await _send(request, database, caller, address, path)


@bucket_files.get(
    f"{BUCKET_PAGE}/resolve/{{path:path}}",
    response_class=Response,
    responses=FILE_OR_INFO_RESPONSES,
)
async def resolve_bucket_file(
    request: Request, database: Db, caller: Downloader, address: FilesRepo, path: str
) -> Response:
    """Download a file of a bucket at the address that the public client uses."""
    return await _send(request, database, caller, address, path)


async def _send(
    request: Request, database: Database, caller: Caller | None, address: RepoAddress, path: str
) -> Response:
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.read)
        file = await service.get(conn, repo, path)
        source = await service.open_content(conn, repo, file)
        headers = linked_headers(sha256=file.sha256, size=file.size)
        if file.xet_hash is not None:
            headers |= await xet_headers(conn, repo, file.xet_hash)
    return file_info_response(request, headers) or await blob_response(
        request,
        source,
        size=file.size,
        etag=file.sha256,
        file_name=file.name,
        media_type=file.media_type or UNKNOWN_MEDIA_TYPE,
        headers=headers,
    )


@bucket_files.get(f"{BUCKET}/tree", responses=PAGED_RESPONSES)
async def list_bucket_tree(
    conn: ReadConn,
    caller: MaybeCaller,
    address: FilesRepo,
    page: TreePage,
    *,
    recursive: bool = True,
) -> list[BucketEntry]:
    """List all files of a bucket; with `recursive=false`, the files and folders at its top."""
    repo = await repos.get(conn, caller, address, Right.read)
    return await _tree(conn, repo, page, prefix="", recursive=recursive)


@bucket_files.get(f"{BUCKET}/tree/{{prefix:path}}", responses=PAGED_RESPONSES)
async def list_bucket_folder(
    conn: ReadConn,
    caller: MaybeCaller,
    address: FilesRepo,
    page: TreePage,
    prefix: str,
    *,
    recursive: bool = True,
) -> list[BucketEntry]:
    """List all files that begin with a prefix in a bucket; a folder's path lists what is in it.

    With `recursive=false`, folders stand for what is in them.
    """
    repo = await repos.get(conn, caller, address, Right.read)
    return await _tree(conn, repo, page, prefix=prefix, recursive=recursive)


async def _tree(
    conn: Reader, repo: Repo, page: Page, *, prefix: str, recursive: bool
) -> list[BucketEntry]:
    entries = await service.list_tree(
        conn, repo, prefix=prefix, after=page.after, limit=page.reach, recursive=recursive
    )
    return [bucket_entry(entry) for entry in page.cut(entries, position=_position)]


def _position(entry: FileOrFolder) -> str:
    return quote(entry.path + "/" * isinstance(entry, Folder))


@bucket_files.post(f"{BUCKET}/paths-info")
async def get_bucket_paths_info(
    conn: ReadConn, caller: MaybeCaller, address: FilesRepo, body: AskedPaths
) -> list[BucketFile]:
    """Tell of those among some paths that are files of a bucket."""
    repo = await repos.get(conn, caller, address, Right.read)
    files = await store.find_all(conn, repo.id, body.paths)
    return [BucketFile.of(file) for file in files.values()]


@bucket_files.post(
    f"{BUCKET}/batch", responses={422: {"model": BatchRefused}}, openapi_extra=_TAKES_LINES
)
async def change_bucket_files(
    request: Request, database: Db, caller: AnyCaller, address: FilesRepo
) -> BatchDone:
    """Put, copy and delete up to 1000 files of a bucket; `failed` says what could not be done.

    One operation in JSON on each line: `addFile` with the `xetHash` of what was uploaded to the
    bucket or of a file in it, or with `content` in base64; `copyFile` with the `xetHash` of what
    another repository has, which moves no bytes; or `deleteFile`. Each has its `path`, and may
    have its `mtime` in milliseconds since 1970; a `sha256` stands for an `xetHash`.
    """
    operations = await read_batch(body_of(request))
    failures = await batch.apply_batch(database, caller, address, operations)
    return BatchDone(
        success=not failures,
        processed=len(operations),
        succeeded=sum(operation.path not in failures for operation in operations),
        failed=[FailedOperation(path=path, error=why) for path, why in failures.items()],
    )


# Below the last route of buckets, because it copies those that are there.
container_files = mirror_for_containers(bucket_files)
