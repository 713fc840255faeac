"""HTTP for the files of buckets, and the same for containers."""

from typing import Any
from urllib.parse import quote

from fastapi import Request
from starlette.responses import Response

from hublet.core.database import Database, Reader
from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.http.bodies import streams
from hublet.core.http.paging import LINKED, Page
from hublet.core.http.sending import SENT, blob_response
from hublet.core.schema import Done
from hublet.repos import service as repos
from hublet.repos.auth import MOVED
from hublet.repos.blobs.folder import path_of
from hublet.repos.files import putting, service, store
from hublet.repos.files.auth import (
    BUCKET,
    BUCKET_PAGE,
    AskedCondition,
    AskedUpload,
    FilesRepo,
    TreePage,
    body_of,
    of_containers,
)
from hublet.repos.files.media import UNKNOWN
from hublet.repos.files.records import Entry, Folder, Removal
from hublet.repos.files.schemas import AskedPaths, BucketEntry, BucketFile, shown
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.tokens.auth import AnyCaller, MaybeCaller
from hublet.tokens.records import Caller

buckets = Router(tags=["buckets"], responses=MOVED)

streams("PUT", r"/api/(buckets|containers)/[^/]+/[^/]+/files/.*")

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


@buckets.put(f"{BUCKET}/files/{{path:path}}", responses=_CHANGED, openapi_extra=_TAKES_A_FILE)
async def put_bucket_file(
    request: Request, database: Db, caller: AnyCaller, address: FilesRepo, upload: AskedUpload
) -> BucketFile:
    """Put a file into a bucket; its bytes are the body, its `Content-Type` is kept."""
    file = await putting.put(database, caller, address, upload, body_of(request))
    return BucketFile.of(file)


@buckets.delete(f"{BUCKET}/files/{{path:path}}", responses=_CHANGED)
async def delete_bucket_file(
    conn: Conn, caller: AnyCaller, address: FilesRepo, path: str, condition: AskedCondition
) -> Done:
    """Delete a file of a bucket."""
    repo = await repos.get(conn, caller, address, Right.write)
    file = await service.get(conn, repo, path)
    await service.change(conn, caller, repo, [Removal(path=file.path)], on=condition)
    return Done()


@buckets.get(f"{BUCKET}/files/{{path:path}}", response_class=Response, responses=SENT)
async def get_bucket_file(
    request: Request, database: Db, caller: MaybeCaller, address: FilesRepo, path: str
) -> Response:
    """Download a file of a bucket, whole or in part."""
    return await _send(request, database, caller, address, path)


@buckets.get(f"{BUCKET_PAGE}/resolve/{{path:path}}", response_class=Response, responses=SENT)
async def resolve_bucket_file(
    request: Request, database: Db, caller: MaybeCaller, address: FilesRepo, path: str
) -> Response:
    """Download a file of a bucket at the address that the public client uses."""
    return await _send(request, database, caller, address, path)


async def _send(
    request: Request, database: Database, caller: Caller | None, address: RepoAddress, path: str
) -> Response:
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.read)
        file = await service.get(conn, repo, path)
    return await blob_response(
        request,
        path_of(database.hub.settings.database.data_dir, file.sha256),
        size=file.size,
        etag=file.sha256,
        file_name=file.name,
        media_type=file.media_type or UNKNOWN,
    )


@buckets.get(f"{BUCKET}/tree", responses=LINKED)
async def list_bucket_tree(
    conn: ReadConn,
    caller: MaybeCaller,
    address: FilesRepo,
    page: TreePage,
    *,
    recursive: bool = False,
) -> list[BucketEntry]:
    """List the files and folders at the top of a bucket, or all its files."""
    repo = await repos.get(conn, caller, address, Right.read)
    return await _tree(conn, repo, page, prefix="", recursive=recursive)


@buckets.get(f"{BUCKET}/tree/{{prefix:path}}", responses=LINKED)
async def list_bucket_folder(
    conn: ReadConn,
    caller: MaybeCaller,
    address: FilesRepo,
    page: TreePage,
    prefix: str,
    *,
    recursive: bool = False,
) -> list[BucketEntry]:
    """List what begins with a prefix in a bucket; a folder's path lists what is in it, too."""
    repo = await repos.get(conn, caller, address, Right.read)
    return await _tree(conn, repo, page, prefix=prefix, recursive=recursive)


async def _tree(
    conn: Reader, repo: Repo, page: Page, *, prefix: str, recursive: bool
) -> list[BucketEntry]:
    entries = await service.list_tree(
        conn, repo, prefix=prefix, after=page.after, limit=page.reach, recursive=recursive
    )
    return [shown(entry) for entry in page.cut(entries, position=_position)]


def _position(entry: Entry) -> str:
    return quote(entry.path + "/" * isinstance(entry, Folder))


@buckets.post(f"{BUCKET}/paths-info")
async def get_bucket_paths_info(
    conn: ReadConn, caller: MaybeCaller, address: FilesRepo, body: AskedPaths
) -> list[BucketFile]:
    """Tell of those among some paths that are files of a bucket."""
    repo = await repos.get(conn, caller, address, Right.read)
    files = await store.find_all(conn, repo.id, body.paths)
    return [BucketFile.of(file) for file in files.values()]


containers = of_containers(buckets)
