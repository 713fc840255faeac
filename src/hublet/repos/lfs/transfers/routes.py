"""HTTP for the bytes of large files; the address itself is the permission."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response
from starlette.requests import ClientDisconnect

from hublet.core.database import Database
from hublet.core.errors import InvalidRequest
from hublet.core.http import Db, Router
from hublet.core.http.bodies import streams
from hublet.core.http.sending import SENT, blob_response
from hublet.core.schema import Done
from hublet.repos.downloads.media_types import BINARY
from hublet.repos.lfs import links
from hublet.repos.lfs.links import Link
from hublet.repos.lfs.schemas import CompleteUpload, LinkQuery
from hublet.repos.lfs.transfers import service

_OBJECT = "/api/lfs/{repo_id}/{oid}"
_PART = _OBJECT + "/parts/{number}"
_BYTES = {"schema": {"type": "string", "format": "binary"}}
_TAKES_BYTES: dict[str, Any] = {"requestBody": {"required": True, "content": {BINARY: _BYTES}}}
_HAS_ETAG: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"ETag": {"required": True, "schema": {"type": "string"}}}}
}

router = Router(
    tags=["repos"], responses={403: {"description": "The link was changed, or is too old."}}
)

streams("PUT", r"/api/lfs/[^/]+/[^/]+(/parts/[^/]+)?")

SignedQuery = Annotated[LinkQuery, Query()]


def _checked(database: Database, link: Link, query: LinkQuery) -> Link:
    links.check(link, database.hub.keys, expires=query.expires, signature=query.signature)
    return link


def _for(act: str) -> Callable[[Database, str, str, LinkQuery], Awaitable[Link]]:
    async def check(database: Db, repo_id: str, oid: str, query: SignedQuery) -> Link:
        link = Link(act=act, repo_id=repo_id, oid=oid, size=query.size, part=query.count)
        return _checked(database, link, query)

    return check


async def _for_part(database: Db, repo_id: str, oid: str, number: int, query: SignedQuery) -> Link:
    link = Link(act="part", repo_id=repo_id, oid=oid, size=query.size, part=number)
    return _checked(database, link, query)


@router.put(_OBJECT, openapi_extra=_TAKES_BYTES)
async def upload_lfs_object(
    request: Request, database: Db, link: Annotated[Link, Depends(_for("upload"))]
) -> Done:
    """Send a large file in one piece, to the address that the batch endpoint gave out."""
    await service.receive(database, link, _pieces(request))
    return Done()


@router.put(_PART, openapi_extra=_TAKES_BYTES, responses=_HAS_ETAG)
async def upload_lfs_part(
    request: Request,
    response: Response,
    database: Db,
    link: Annotated[Link, Depends(_for_part)],
) -> Done:
    """Send a part of a large file; `ETag` is needed to put the parts together."""
    etag = await service.receive_part(database, link, _pieces(request))
    response.headers["ETag"] = f'"{etag}"'
    return Done()


@router.post(_OBJECT + "/complete")
async def complete_lfs_upload(
    database: Db, link: Annotated[Link, Depends(_for("complete"))], body: CompleteUpload
) -> Done:
    """Put a large file together from its parts."""
    await service.complete(database, link, body)
    return Done()


@router.get(_OBJECT, response_class=Response, responses=SENT)
async def download_lfs_object(
    request: Request, database: Db, link: Annotated[Link, Depends(_for("download"))]
) -> Response:
    """Get a large file: whole, or the part that `Range` names."""
    path = await service.get_path(database, link)
    return await blob_response(
        request, path, size=link.size, etag=link.oid, file_name=link.oid, media_type=BINARY
    )


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    try:
        async for piece in request.stream():
            yield piece
    except ClientDisconnect:
        raise InvalidRequest("The body ends too early.") from None
