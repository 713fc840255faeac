"""HTTP for downloads: the files of a revision, at the paths of the public service."""

from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Request, Response

from hublet.core.database import Database
from hublet.core.errors import NotFound
from hublet.core.http import Db, MayBeOld, Router
from hublet.core.http.exchange import exchange_of
from hublet.core.http.file_responses import (
    FILE_OR_INFO_RESPONSES,
    blob_response,
    content_disposition,
    content_response,
    file_info_response,
    redirect_response,
)
from hublet.repos.auth import (
    GIT_TAGS,
    MOVED,
    ROOT_REPO,
    Downloader,
    GitRepo,
    RootRepo,
    count_download,
)
from hublet.repos.browse import downloads
from hublet.repos.browse.auth import IN_REVISION, RevisionPath, revision_and_path
from hublet.repos.browse.downloads import BINARY, TEXT, safe_media_type
from hublet.repos.browse.records import StoredFile
from hublet.repos.browse.revisions import get_revision
from hublet.repos.records import RepoAddress, Right
from hublet.storage.contents import ContentSource, download_address
from hublet.storage.object_store import open_store
from hublet.storage.records import Content
from hublet.tokens.auth import MaybeCaller
from hublet.tokens.records import Caller

# The path that the public service redirects its clients to.
CACHED_REPO = "/api/resolve-cache/{kind:kind}/{namespace:owner}/{name}"

# What a browser says of the picture in a README: to look at a page is no download.
_PARTS_OF_PAGES = {"audio", "image", "video"}
# Programs say nothing of this, and a person who follows a link the second. What a page shows or a
# script reads comes from the hub: pages may load nothing else, and a bucket lets no script read.
_FOLLOWS_REDIRECTS = {None, "document"}

router = Router(tags=GIT_TAGS, responses=MOVED | FILE_OR_INFO_RESPONSES)


async def _revision_path(
    request: Request,
    database: Database,
    caller: Caller | None,
    address: RepoAddress,
    rest: str,
    *,
    may_be_old: bool = False,
) -> RevisionPath:
    name, path = revision_and_path(request, rest)
    revision = await get_revision(
        database, caller, address, name, right=Right.read, may_be_old=may_be_old
    )
    return RevisionPath(revision=revision, path=path)


async def _root_file(
    request: Request,
    database: Db,
    caller: Downloader,
    address: RootRepo,
    rest: str,
    *,
    may_be_old: MayBeOld,
) -> StoredFile:
    """Find a file. A replica may tell its headers; its content is never sent by what was public once."""
    if may_be_old and exchange_of(request).without_body:
        # What is not there yet is looked for on the primary.
        with suppress(NotFound):
            return await _find_file(request, database, caller, address, rest, may_be_old=True)
    return await _find_file(request, database, caller, address, rest, may_be_old=False)


async def _find_file(
    request: Request,
    database: Database,
    caller: Caller | None,
    address: RepoAddress,
    rest: str,
    *,
    may_be_old: bool,
) -> StoredFile:
    location = await _revision_path(request, database, caller, address, rest, may_be_old=may_be_old)
    return await downloads.get_file(
        database, location.revision, location.path, may_be_old=may_be_old
    )


async def _root_path(
    request: Request,
    database: Db,
    caller: Downloader,
    address: RootRepo,
    rest: str,
) -> RevisionPath:
    return await _revision_path(request, database, caller, address, rest)


async def _cached_path(
    request: Request, database: Db, caller: MaybeCaller, address: GitRepo, rest: str
) -> RevisionPath:
    return await _revision_path(request, database, caller, address, rest)


@router.get(ROOT_REPO + "/resolve" + IN_REVISION, response_class=Response)
async def download_file(
    request: Request,
    database: Db,
    file: Annotated[StoredFile, Depends(_root_file)],
    *,
    download: bool = False,
) -> Response:
    """Download a file of a revision: whole, or the part that `Range` names.

    The path is the revision and, behind it, the file; slashes within a revision are `%2F`.
    With `download=true` a browser saves the file instead of showing it. For a file that can be
    downloaded through Xet, `X-Xet-Hash` and `Link` tell how; `Accept:
    application/vnd.xet-fileinfo+json` asks for that alone.
    """
    return await _send(request, database, file, to_save=download)


@router.get(CACHED_REPO + IN_REVISION, response_class=Response)
async def download_cached_file(
    request: Request, database: Db, location: Annotated[RevisionPath, Depends(_cached_path)]
) -> Response:
    """Download a file of a revision, as under `resolve`."""
    return await _send(
        request, database, await downloads.get_file(database, location.revision, location.path)
    )


@router.get(ROOT_REPO + "/raw" + IN_REVISION, response_class=Response)
async def download_raw_file(
    request: Request, location: Annotated[RevisionPath, Depends(_root_path)]
) -> Response:
    """Download a file as git holds it: of a large file, the pointer to its content."""
    file = await downloads.get_raw_file(location.revision, location.path)
    lfs = file.entry.lfs
    return await content_response(
        request,
        partial(downloads.read_git_file, file),
        size=file.entry.size if lfs is None else lfs.pointer_size,
        etag=file.entry.oid,
        file_name=_name(file),
        media_type=safe_media_type(file.entry.path) if lfs is None else TEXT,
        headers={"X-Repo-Commit": file.commit},
    )


def _name(file: StoredFile) -> str:
    return file.entry.path.rpartition("/")[2]


async def _send(
    request: Request, database: Database, file: StoredFile, *, to_save: bool = False
) -> Response:
    media_type, name, content = safe_media_type(file.entry.path), _name(file), file.content
    headers = {"X-Repo-Commit": file.commit}
    if to_save:
        headers["Content-Disposition"] = content_disposition(name, BINARY)
    if content is None:
        send = partial(content_response, request, partial(downloads.read_git_file, file))
        version = file.entry.oid
    else:
        headers |= await downloads.lfs_headers(database, file, content)
        if (info := file_info_response(request, headers)) is not None:
            return info
        address = _address(request, database, file, content, to_save=to_save)
        if address is not None:
            return _redirect(request, address, file, headers)
        store = open_store(database.hub.settings)
        send = partial(blob_response, request, ContentSource(store, content))
        version = content.sha256
    response = await send(
        size=file.entry.size, etag=version, file_name=name, media_type=media_type, headers=headers
    )
    _count(request, response, file.repo.id)
    return response


def _redirect(
    request: Request, address: str, file: StoredFile, headers: dict[str, str]
) -> Response:
    assert file.content is not None  # noqa: S101 - only such are redirected
    response = redirect_response(request, address, etag=file.content.sha256, headers=headers)
    if request.headers.get("range", "bytes=0-").startswith("bytes=0-"):
        _count(request, response, file.repo.id)
    return response


def _address(
    request: Request, database: Database, file: StoredFile, content: Content, *, to_save: bool
) -> str | None:
    """Return where in the object storage a large file can be read, if this client may go there."""
    if request.headers.get("sec-fetch-dest") not in _FOLLOWS_REDIRECTS:
        return None
    media_type = safe_media_type(file.entry.path)
    disposition = content_disposition(_name(file), BINARY if to_save else media_type)
    return download_address(
        database.hub.settings, content, media_type=media_type, disposition=disposition
    )


def _count(request: Request, response: Response, repo_id: str) -> None:
    """Count a download when it begins, not one that is resumed or that the client has cached."""
    if exchange_of(request).without_body or response.status_code == HTTPStatus.NOT_MODIFIED:
        return
    if request.headers.get("sec-fetch-dest") in _PARTS_OF_PAGES:
        return
    if response.headers.get("Content-Range", "bytes 0-").startswith("bytes 0-"):
        count_download(request, repo_id)
