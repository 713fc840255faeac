"""HTTP of blobs in the registry: pull, upload in one or several requests, mount, deletion."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Path, Query, Request
from starlette.responses import Response

from hublet.core.database import Connection, Database
from hublet.core.dataclasses import dataclass
from hublet.core.http import Conn, Db, Router
from hublet.core.http.conditional_requests import RangeNotSatisfiable
from hublet.core.http.exchange import allow_streaming, exchange_of
from hublet.core.http.file_responses import blob_response, redirect_response
from hublet.core.http.request_bodies import RequestBody
from hublet.registry import access, service, uploads
from hublet.registry.auth import RegistryCaller
from hublet.registry.errors import BlobNotFound, InvalidDigest, InvalidImageName
from hublet.registry.records import (
    ImageKey,
    ImageName,
    Upload,
    check_digest,
    is_digest,
    parse_image_name,
)
from hublet.registry.schemas import BLOB, BLOB_STORED, SESSION, TAKES_BYTES, error_responses
from hublet.registry.tokens import RegistryIdentity
from hublet.registry.uploads import BodyBroken, UploadBody
from hublet.repos.records import Repo, Right
from hublet.storage.contents import ContentSource, download_address
from hublet.storage.object_store import open_store

# Clients of the first days look for it.
VERSION = {"Docker-Distribution-Api-Version": "registry/2.0"}
BINARY = "application/octet-stream"
_ALGORITHMS = frozenset({"sha256", "sha512"})
_REVERSED_RANGE = re.compile(r"bytes\s*=\s*(\d+)\s*-\s*(\d+)", re.IGNORECASE)

for _method in ("POST", "PATCH", "PUT"):
    allow_streaming(_method, r"/v2/.+/blobs/uploads(/.*)?")

blobs = Router(tags=["containers"])


async def _image_name(
    name: Annotated[str, Path(description="The name of an image: `namespace/name`, or below it.")],
) -> ImageName:
    return parse_image_name(name)


Name = Annotated[ImageName, Depends(_image_name)]
Digest = Annotated[str, Path(description="`sha256:` or `sha512:` and the digits.")]
Reference = Annotated[str, Path(description="A tag or a digest.")]


def key_of(repo: Repo, name: ImageName) -> ImageKey:
    return ImageKey(repo_id=repo.id, path=name.path)


def user_id_of(caller: RegistryIdentity) -> str:
    assert caller.caller is not None  # noqa: S101 - nobody else may write
    return caller.caller.user_id


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadStart:
    """How an upload begins: with all of a blob, with one of another image, or with nothing."""

    digest: str
    mount: str
    source: str


async def _upload_start(
    digest: Annotated[str, Query(description="The digest of the body, a whole blob.")] = "",
    mount: Annotated[str, Query(description="The digest of a blob of another image.")] = "",
    source: Annotated[str, Query(alias="from", description="The image to mount it from.")] = "",
    algorithm: Annotated[
        str, Query(alias="digest-algorithm", description="That of the digest at the end.")
    ] = "",
) -> UploadStart:
    if algorithm and algorithm not in _ALGORITHMS:
        raise InvalidDigest(algorithm)
    if digest:
        check_digest(digest)
    return UploadStart(digest=digest, mount=mount, source=source)


@blobs.post("/v2/{name:path}/blobs/uploads", include_in_schema=False)
@blobs.post(
    "/v2/{name:path}/blobs/uploads/",
    status_code=202,
    response_class=Response,
    responses=error_responses(409, 413) | BLOB_STORED | {202: {"headers": SESSION}},
    openapi_extra=TAKES_BYTES,
)
async def begin_upload(
    request: Request,
    database: Db,
    caller: RegistryCaller,
    name: Name,
    start: Annotated[UploadStart, Depends(_upload_start)],
) -> Response:
    """Begin the upload of a blob; with `digest` the body is all of it, with `mount` none is needed."""
    repo = await access.get_or_create_repo(database, caller, name)
    image = key_of(repo, name)
    if start.digest:
        await uploads.receive(database, repo, image, start.digest, _body(request))
        return _created(name, start.digest)
    if is_digest(start.mount) and await _mount(database, caller, repo, name, start):
        return _created(name, start.mount)
    async with database.transaction() as conn:
        upload = await uploads.begin(conn, image, user_id=user_id_of(caller))
    return _session(name, upload.id, 0, status=202)


async def _mount(
    database: Database,
    caller: RegistryIdentity,
    repo: Repo,
    name: ImageName,
    start: UploadStart,
) -> bool:
    """Take a blob from an image that the caller may read; False when there is none, for any reason."""
    async with database.transaction() as conn:
        for source in await _mount_sources(conn, caller, name, start):
            if await service.mount_blob(conn, repo, key_of(repo, name), start.mount, source=source):
                return True
    return False


async def _mount_sources(
    conn: Connection, caller: RegistryIdentity, name: ImageName, start: UploadStart
) -> list[ImageKey]:
    if not start.source:
        return await service.list_readable_holders(conn, caller, start.mount)
    try:
        source = parse_image_name(start.source)
    except InvalidImageName:
        return []
    found = await access.find_mount_source(conn, caller, source=source, target=name)
    return [] if found is None else [key_of(found, source)]


async def _upload(
    database: Database, caller: RegistryIdentity, name: ImageName, upload_id: str
) -> tuple[Repo, Upload]:
    async with database.read() as conn:
        repo = await access.get_repo(conn, caller, name, Right.write)
        upload = await uploads.get(conn, key_of(repo, name), upload_id, user_id=user_id_of(caller))
    return repo, upload


@blobs.get(
    "/v2/{name:path}/blobs/uploads/{upload_id}",
    status_code=204,
    response_class=Response,
    responses=error_responses() | {204: {"headers": SESSION}},
)
async def get_upload(database: Db, caller: RegistryCaller, name: Name, upload_id: str) -> Response:
    """Tell how far an upload came."""
    _, upload = await _upload(database, caller, name, upload_id)
    return _session(name, upload.id, upload.size, status=204)


@blobs.patch(
    "/v2/{name:path}/blobs/uploads/{upload_id}",
    status_code=202,
    response_class=Response,
    responses=error_responses(413, 416) | {202: {"headers": SESSION}},
    openapi_extra=TAKES_BYTES,
)
async def append_to_upload(
    request: Request, database: Db, caller: RegistryCaller, name: Name, upload_id: str
) -> Response:
    """Send more of a blob; with `Content-Range` it must follow what has arrived."""
    repo, upload = await _upload(database, caller, name, upload_id)
    size = await uploads.append(database, repo, upload, _body(request))
    return _session(name, upload.id, size, status=202)


@blobs.put(
    "/v2/{name:path}/blobs/uploads/{upload_id}",
    status_code=201,
    response_class=Response,
    responses=error_responses(413, 416) | BLOB_STORED,
    openapi_extra=TAKES_BYTES,
)
async def complete_upload(
    request: Request,
    database: Db,
    caller: RegistryCaller,
    name: Name,
    upload_id: str,
    digest: Annotated[str, Query(description="The digest of the whole blob.")] = "",
) -> Response:
    """Complete an upload, with the rest of the blob, with all of it, or with nothing more."""
    check_digest(digest)
    repo, upload = await _upload(database, caller, name, upload_id)
    await uploads.complete(database, repo, upload, digest, _body(request))
    return _created(name, digest)


@blobs.delete(
    "/v2/{name:path}/blobs/uploads/{upload_id}",
    status_code=204,
    response_class=Response,
    responses=error_responses(),
)
async def cancel_upload(
    database: Db, caller: RegistryCaller, name: Name, upload_id: str
) -> Response:
    """Give an upload up."""
    _, upload = await _upload(database, caller, name, upload_id)
    await uploads.cancel(database, upload)
    return Response(status_code=204, headers=VERSION)


@blobs.get(
    "/v2/{name:path}/blobs/{digest}",
    response_class=Response,
    responses=error_responses(416) | BLOB,
)
async def get_blob(
    request: Request, database: Db, caller: RegistryCaller, name: Name, digest: Digest
) -> Response:
    """Pull a blob, or the part of it that `Range` names."""
    check_digest(digest)
    async with database.read() as conn:
        repo = await access.get_repo(conn, caller, name, Right.read)
        blob, content = await service.get_blob(conn, key_of(repo, name), digest)
    objects = open_store(database.hub.settings)
    headers = {**VERSION, "Docker-Content-Digest": digest}
    address = None
    if exchange_of(request).without_body:
        if not await service.check_object(objects, content):
            raise BlobNotFound(digest)
        await service.touch_blob(database, key_of(repo, name), blob)
    else:
        _check_range(request, content.size)
        address = download_address(database.hub.settings, content, media_type=BINARY)
    if address is not None and not _keeps_authorization(request, address):
        return redirect_response(request, address, etag=digest, headers=headers)
    try:
        return await blob_response(
            request,
            ContentSource(objects, content),
            size=content.size,
            etag=digest,
            file_name=digest.replace(":", "-"),
            media_type=BINARY,
            headers=headers,
        )
    except FileNotFoundError:
        raise BlobNotFound(digest) from None


def _keeps_authorization(request: Request, address: str) -> bool:
    """Tell whether clients that follow a redirect send their token along.

    Those in Go do, to other ports of the same host and to hosts below it; and a bucket refuses a request
    that has a second credential beside its signature.
    """
    mine, other = (request.url.hostname or "").lower(), urlsplit(address).hostname or ""
    return other == mine or other.endswith(f".{mine}")


def _check_range(request: Request, size: int) -> None:
    """Refuse a range that ends before it begins; elsewhere the whole file is sent then."""
    match = _REVERSED_RANGE.fullmatch(request.headers.get("range", "").strip())
    if match is not None and int(match[2]) < int(match[1]):
        raise RangeNotSatisfiable(size)


@blobs.delete(
    "/v2/{name:path}/blobs/{digest}",
    status_code=202,
    response_class=Response,
    responses=error_responses(405),
)
async def delete_blob(conn: Conn, caller: RegistryCaller, name: Name, digest: Digest) -> Response:
    """Delete a blob of an image; where another image has it, it stays."""
    check_digest(digest)
    repo = await access.get_repo(conn, caller, name, Right.write)
    await service.delete_blob(conn, key_of(repo, name), digest)
    return Response(status_code=202, headers=VERSION)


def _body(request: Request) -> UploadBody:
    length = request.headers.get("content-length", "")
    return UploadBody(
        pieces=RequestBody(request, broken=BodyBroken),
        content_range=request.headers.get("content-range"),
        length=int(length) if length.isdigit() else None,
    )


def _created(name: ImageName, digest: str) -> Response:
    headers = {"Location": f"/v2/{name}/blobs/{digest}", "Docker-Content-Digest": digest}
    return Response(status_code=201, headers=VERSION | headers)


def _session(name: ImageName, upload_id: str, size: int, *, status: int) -> Response:
    headers = {
        **VERSION,
        **uploads.session_headers(upload_id, size),
        "Location": f"/v2/{name}/blobs/uploads/{upload_id}",
    }
    return Response(status_code=status, headers=headers)
