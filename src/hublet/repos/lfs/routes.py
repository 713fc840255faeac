"""HTTP for Git LFS: the batch API, transfers at signed links, and the large files of a repository."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from hublet.core.database import Connection, Database
from hublet.core.errors import NotImplementedHere
from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.http.exchange import allow_streaming
from hublet.core.http.file_responses import FILE_RESPONSES, blob_response
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.schema import Done
from hublet.repos.auth import (
    BUCKET,
    GIT_REPO,
    GIT_TAGS,
    MOVED,
    ROOT_REPO,
    FilesRepo,
    GitRepo,
    RootRepo,
    body_of,
)
from hublet.repos.browse.downloads import BINARY
from hublet.repos.lfs import direct_uploads, links, management, service, transfers
from hublet.repos.lfs.links import DOWNLOAD_LIFE, UPLOAD_LIFE, Link
from hublet.repos.lfs.records import ObjectRequest
from hublet.repos.lfs.schemas import (
    ChangeLfsFiles,
    CompleteUpload,
    CopiedLfsFiles,
    CopyLfsFiles,
    LfsBatch,
    LfsBatchAnswer,
    LinkQuery,
    ListedLfsFile,
    ListedLocks,
    VerifiedLocks,
    VerifyLocks,
    VerifyObject,
)
from hublet.repos.names import split_name
from hublet.repos.push import service as push
from hublet.repos.records import MAIN, RepoAddress, RepoType, Right
from hublet.repos.xet.tokens import TOKEN_LIFE
from hublet.storage.contents import ContentSource
from hublet.storage.object_store import open_store
from hublet.tokens.auth import AnyCaller, GitCaller
from hublet.tokens.records import Caller


class LfsResponse(JSONResponse):
    media_type = "application/vnd.git-lfs+json"


_LFS = ROOT_REPO + "/info/lfs"

router = Router(tags=["repos"], responses=MOVED, default_response_class=LfsResponse)


@router.post(_LFS + "/objects/batch")
async def prepare_lfs_transfers(
    request: Request, database: Db, caller: GitCaller, address: RootRepo, body: LfsBatch
) -> LfsBatchAnswer:
    """Ask where to send or to get large files, by the SHA-256 of their content.

    Objects without actions are on the hub already. A token may be sent as a password, too. Who
    names `xet` among the transfers uploads through the CAS.
    """
    requests = [ObjectRequest(oid=each.oid, size=each.size) for each in body.objects]
    if body.operation == "download":
        async with database.read() as conn:
            responses = await service.prepare_downloads(conn, caller, address, requests)
        return LfsBatchAnswer.of(responses, life=DOWNLOAD_LIFE)
    if "xet" in body.transfers:
        revision = MAIN if body.ref is None else body.ref.name
        async with database.read() as conn:
            responses = await service.prepare_xet_uploads(
                conn, caller, address, requests, revision=revision
            )
        return LfsBatchAnswer.of(responses, life=TOKEN_LIFE, transfer="xet")
    responses = await direct_uploads.prepare_uploads(
        database,
        caller,
        address,
        requests,
        in_parts="multipart" in body.transfers,
        # A browser would need the bucket's leave.
        is_direct="origin" not in request.headers,
    )
    return LfsBatchAnswer.of(responses, life=UPLOAD_LIFE)


@router.post(_LFS + "/objects/verify")
async def verify_lfs_object(
    database: Db, caller: GitCaller, address: RootRepo, body: VerifyObject
) -> Done:
    """Check that a large file arrived, whole."""
    request = ObjectRequest(oid=body.oid, size=body.size)
    await direct_uploads.verify(database, caller, address, request)
    return Done()


@router.get(_LFS + "/locks")
async def list_lfs_locks(conn: ReadConn, caller: GitCaller, address: RootRepo) -> ListedLocks:
    """List the locks of a repository: there are none on this hub."""
    await push.get_or_challenge(conn, caller, address, Right.read)
    return ListedLocks()


@router.post(_LFS + "/locks/verify")
async def verify_lfs_locks(
    conn: ReadConn, caller: GitCaller, address: RootRepo, _body: VerifyLocks
) -> VerifiedLocks:
    """Tell whose locks are in the way of a push: nobody's on this hub."""
    await push.get_or_challenge(conn, caller, address, Right.write)
    return VerifiedLocks()


@router.post(_LFS + "/locks", responses={501: {"description": "This hub has no locks."}})
async def create_lfs_lock(conn: ReadConn, caller: GitCaller, address: RootRepo) -> Done:
    """Lock a file; this hub refuses, because it has no locks."""
    await push.get_or_challenge(conn, caller, address, Right.write)
    raise NotImplementedHere("This hub has no locks: a push is refused when another was faster.")


_OBJECT = "/api/lfs/{repo_id}/{oid}"
_PART = _OBJECT + "/parts/{number}"
_BYTES = {"schema": {"type": "string", "format": "binary"}}
_TAKES_BYTES: dict[str, Any] = {"requestBody": {"required": True, "content": {BINARY: _BYTES}}}
_HAS_ETAG: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"ETag": {"required": True, "schema": {"type": "string"}}}}
}

transfers_router = Router(
    tags=["repos"], responses={403: {"description": "The link was changed, or is too old."}}
)

allow_streaming("PUT", r"/api/lfs/[^/]+/[^/]+(/parts/[^/]+)?")

SignedQuery = Annotated[LinkQuery, Query()]


def _checked_link(database: Database, link: Link, query: LinkQuery) -> Link:
    links.check_link(link, database.hub.keys, expires=query.expires, signature=query.signature)
    return link


def _link_for(act: str) -> Callable[[Database, str, str, LinkQuery], Awaitable[Link]]:
    async def check(database: Db, repo_id: str, oid: str, query: SignedQuery) -> Link:
        link = Link(
            act=act,
            repo_id=repo_id,
            oid=oid,
            size=query.size,
            part=query.count,
            upload=query.upload,
        )
        return _checked_link(database, link, query)

    return check


async def _part_link(database: Db, repo_id: str, oid: str, number: int, query: SignedQuery) -> Link:
    link = Link(act="part", repo_id=repo_id, oid=oid, size=query.size, part=number)
    return _checked_link(database, link, query)


@transfers_router.put(_OBJECT, openapi_extra=_TAKES_BYTES)
async def upload_lfs_object(
    request: Request, database: Db, link: Annotated[Link, Depends(_link_for("upload"))]
) -> Done:
    """Send a large file in one piece, to the address that the batch endpoint gave out."""
    await transfers.receive(database, link, body_of(request))
    return Done()


@transfers_router.put(_PART, openapi_extra=_TAKES_BYTES, responses=_HAS_ETAG)
async def upload_lfs_part(
    request: Request,
    response: Response,
    database: Db,
    link: Annotated[Link, Depends(_part_link)],
) -> Done:
    """Send a part of a large file; `ETag` is needed to put the parts together."""
    etag = await transfers.receive_part(database, link, body_of(request))
    response.headers["ETag"] = f'"{etag}"'
    return Done()


@transfers_router.post(_OBJECT + "/complete")
async def complete_lfs_upload(
    database: Db, link: Annotated[Link, Depends(_link_for("complete"))], body: CompleteUpload
) -> Done:
    """Put a large file together from its parts."""
    if link.upload:
        await direct_uploads.complete(database, link, [part.etag for part in body.parts])
    else:
        await transfers.complete(database, link, body)
    return Done()


@transfers_router.get(_OBJECT, response_class=Response, responses=FILE_RESPONSES)
async def download_lfs_object(
    request: Request, database: Db, link: Annotated[Link, Depends(_link_for("download"))]
) -> Response:
    """Get a large file: whole, or the part that `Range` names."""
    content = await transfers.get_content(database, link)
    return await blob_response(
        request,
        ContentSource(open_store(database.hub.settings), content),
        size=link.size,
        etag=link.oid,
        file_name=link.oid,
        media_type=BINARY,
    )


_MOVED_ON: dict[int | str, dict[str, Any]] = {
    409: {"description": "Somebody pushed while history was rewritten; repeat the request."}
}

files_router = Router(prefix=GIT_REPO, tags=GIT_TAGS, responses=MOVED)


@files_router.get("/lfs-files", responses=PAGED_RESPONSES)
async def list_lfs_files(
    database: Db, caller: AnyCaller, address: GitRepo, page: PageQuery
) -> list[ListedLfsFile]:
    """List the large files that a repository has, in any of its commits; for its writers."""
    files = await management.list_files(
        database, caller, address, after=page.after, limit=page.reach
    )
    on_page = page.cut(files, position=lambda file: file.blob.sha256)
    return [ListedLfsFile.of(file) for file in on_page]


@files_router.post("/lfs-files/batch", responses=_MOVED_ON)
async def delete_lfs_files(
    database: Db, caller: AnyCaller, address: GitRepo, body: ChangeLfsFiles
) -> Done:
    """Delete the content of large files for good, from every commit of the repository.

    With `rewriteHistory` no commit shows that they ever were there: commits get new names.
    """
    deletions = body.deletions
    await management.delete(
        database, caller, address, deletions.sha, rewrite_history=deletions.rewriteHistory
    )
    return Done()


@files_router.delete("/lfs-files/{sha}", responses=_MOVED_ON)
async def delete_lfs_file(
    database: Db,
    caller: AnyCaller,
    address: GitRepo,
    sha: Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")],
    *,
    rewriteHistory: bool = False,  # noqa: N803 - a name on the wire
) -> Done:
    """Delete the content of one large file for good, from every commit of the repository."""
    await management.delete(database, caller, address, [sha], rewrite_history=rewriteHistory)
    return Done()


@files_router.post("/lfs-files/duplicate")
async def copy_lfs_files(
    conn: Conn, caller: AnyCaller, address: GitRepo, body: CopyLfsFiles
) -> CopiedLfsFiles:
    """Let another repository use large files of this one without sending them again."""
    return await _copy_files(conn, caller, address, body)


bucket_router = Router(tags=["buckets"], responses=MOVED)


@bucket_router.post(f"{BUCKET}/lfs-files/duplicate")
async def copy_bucket_files(
    conn: Conn, caller: AnyCaller, address: FilesRepo, body: CopyLfsFiles
) -> CopiedLfsFiles:
    """Let a repository with git use files of a bucket without sending them again."""
    return await _copy_files(conn, caller, address, body)


async def _copy_files(
    conn: Connection, caller: Caller, source: RepoAddress, body: CopyLfsFiles
) -> CopiedLfsFiles:
    namespace, name = split_name(body.target.name)
    target = RepoAddress(
        type=RepoType(body.target.type), namespace=namespace or caller.user_name, name=name
    )
    digests = dict.fromkeys(file.sha256 for file in body.files)
    missing = await management.copy(conn, caller, source, target, list(digests))
    return CopiedLfsFiles.of(asked=len(digests), missing=missing)
