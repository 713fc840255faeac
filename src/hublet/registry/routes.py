"""HTTP of the registry: the OCI Distribution protocol at /v2/.

The last `manifests`, `blobs`, `tags` or `referrers` of a path ends the name of the image: a name may
have such a part itself. Locations are relative, because only the client knows how it reached the hub.
"""

import re
from typing import Annotated, Any, NoReturn
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.http.conditional_requests import has_version
from hublet.core.http.error_responses import set_error_body
from hublet.core.http.exchange import allow_streaming, exchange_of
from hublet.registry import (
    access,
    catalog_routes,
    credentials_routes,
    service,
    store,
    token_routes,
)
from hublet.registry.auth import RegistryCaller, RegistryTokenHolder
from hublet.registry.blob_routes import (
    VERSION,
    Digest,
    Name,
    Reference,
    blobs,
    key_of,
    user_id_of,
)
from hublet.registry.errors import (
    ImageNotFound,
    InvalidPageSize,
    ManifestTooLarge,
    TooManyTags,
    error_body,
)
from hublet.registry.manifests import OCI_INDEX, parse_manifest
from hublet.registry.records import ImageName, Referrer, check_digest, check_tag
from hublet.registry.schemas import (
    MANIFEST,
    MANIFEST_PUSHED,
    REFERRERS,
    TAGS,
    TAKES_BYTES,
    RegistryHere,
    error_responses,
)
from hublet.registry.tokens import RegistryIdentity
from hublet.repos.auth import count_download
from hublet.repos.records import Right

LARGEST_MANIFEST = 4 << 20
MOST_TAGS = 10_000
MOST_TAGS_AT_ONCE = 100
# What an address of the protocol is, whatever the method.
_KNOWN_PATHS = re.compile(
    r"|.+/(?:manifests/[^/]+|tags/list|referrers/[^/]+|blobs/[^/]+|blobs/uploads/[^/]*)"
)

set_error_body("/v2(/.*)?", body=error_body, media_type="application/json")
allow_streaming("PUT", r"/v2/.+/manifests/[^/]+")

router = Router(tags=["containers"])


@router.get("/v2", include_in_schema=False)
@router.get("/v2/", responses=error_responses() | {200: {"model": RegistryHere}})
async def get_registry(_caller: RegistryTokenHolder) -> Response:
    """Tell that there is a registry here, and that the credentials are good."""
    return JSONResponse({}, headers=VERSION)


@router.get(
    "/v2/{name:path}/manifests/{reference}",
    response_class=Response,
    responses=error_responses() | MANIFEST,
)
async def get_manifest(
    request: Request, conn: ReadConn, caller: RegistryCaller, name: Name, reference: Reference
) -> Response:
    """Pull a manifest by its tag or digest, byte by byte as it was pushed."""
    repo = await access.get_repo(conn, caller, name, Right.read)
    manifest = await service.get_manifest(conn, key_of(repo, name), reference)
    headers = {
        **VERSION,
        "Docker-Content-Digest": manifest.digest,
        "ETag": f'"{manifest.digest}"',
        # What a tag stands for changes.
        "Cache-Control": "private, no-cache",
    }
    if has_version(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    # What an engine pulls for a job was counted when that was launched.
    if not (exchange_of(request).without_body or caller.is_read_only):
        count_download(request, repo.id)
    # A type that the framework does not complete with a charset.
    headers["Content-Type"] = manifest.media_type
    return Response(manifest.content, headers=headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestTarget:
    """The tags that a manifest is to get, and the digest that it is to have, if one is named."""

    tags: tuple[str, ...]
    digest: str | None


async def _manifest_target(
    reference: Reference,
    tag: Annotated[tuple[str, ...], Query(description="Further tags of the manifest.")] = (),
    digest: Annotated[str, Query(description="The digest of what a tag is to stand for.")] = "",
) -> ManifestTarget:
    if len(tag) > MOST_TAGS_AT_ONCE:
        raise TooManyTags(MOST_TAGS_AT_ONCE)
    is_tag = ":" not in reference
    tags = tuple(dict.fromkeys((reference, *tag) if is_tag else tag))
    for each in tags:
        check_tag(each)
    expected = (digest or None) if is_tag else reference
    if expected is not None:
        check_digest(expected)
    return ManifestTarget(tags=tags, digest=expected)


@router.put(
    "/v2/{name:path}/manifests/{reference}",
    status_code=201,
    response_class=Response,
    responses=error_responses(409, 413, 414) | MANIFEST_PUSHED,
    openapi_extra=TAKES_BYTES,
)
async def put_manifest(
    request: Request,
    database: Db,
    caller: RegistryCaller,
    name: Name,
    target: Annotated[ManifestTarget, Depends(_manifest_target)],
) -> Response:
    """Push a manifest by its digest or by a tag; what it names must have been pushed before."""
    repo = await access.get_or_create_repo(database, caller, name)
    manifest = parse_manifest(
        await _read_manifest(request),
        content_type=request.headers.get("content-type", ""),
        expected_digest=target.digest,
    )
    await service.put_manifest(
        database, repo, key_of(repo, name), manifest, tags=target.tags, user_id=user_id_of(caller)
    )
    response = Response(status_code=201, headers=VERSION)
    response.headers["Location"] = f"/v2/{name}/manifests/{manifest.digest}"
    response.headers["Docker-Content-Digest"] = manifest.digest
    if manifest.subject is not None:
        response.headers["OCI-Subject"] = manifest.subject
    for each in target.tags if request.query_params.get("tag") else ():
        response.headers.append("OCI-Tag", each)
    return response


async def _read_manifest(request: Request) -> bytes:
    length = request.headers.get("content-length", "")
    content = bytearray()
    if length.isdigit() and int(length) > LARGEST_MANIFEST:
        raise ManifestTooLarge(LARGEST_MANIFEST)
    async for piece in request.stream():
        content += piece
        if len(content) > LARGEST_MANIFEST:
            raise ManifestTooLarge(LARGEST_MANIFEST)
    return bytes(content)


@router.delete(
    "/v2/{name:path}/manifests/{reference}",
    status_code=202,
    response_class=Response,
    responses=error_responses(405),
)
async def delete_manifest(
    conn: Conn, caller: RegistryCaller, name: Name, reference: Reference
) -> Response:
    """Delete a tag, or by its digest a manifest and all its tags."""
    repo = await access.get_repo(conn, caller, name, Right.write)
    await service.delete_manifest(
        conn, repo, key_of(repo, name), reference, user_id=user_id_of(caller)
    )
    return Response(status_code=202, headers=VERSION)


@router.get("/v2/{name:path}/tags/list", responses=error_responses() | TAGS)
async def list_tags(
    conn: ReadConn,
    caller: RegistryCaller,
    name: Name,
    n: Annotated[str, Query(description="How many tags.")] = "",
    last: Annotated[str, Query(description="Only tags behind this one.")] = "",
) -> Response:
    """List the tags of an image, in the order of their bytes."""
    repo = await access.get_repo(conn, caller, name, Right.read)
    image, limit = key_of(repo, name), _page_size(n)
    tags = [tag.name for tag in await store.list_tags(conn, image, after=last, limit=limit + 1)]
    if not tags and image.path and not await store.image_exists(conn, image):
        raise ImageNotFound(str(name))
    headers = dict(VERSION)
    if limit and len(tags) > limit:
        query = urlencode({"n": limit, "last": tags[limit - 1]})
        headers["Link"] = f'</v2/{name}/tags/list?{query}>; rel="next"'
    return JSONResponse({"name": str(name), "tags": tags[:limit]}, headers=headers)


def _page_size(text: str) -> int:
    if not text:
        return MOST_TAGS
    if not (text.isascii() and text.isdigit()):
        raise InvalidPageSize
    return min(int(text[:9]), MOST_TAGS)


@router.get(
    "/v2/{name:path}/referrers/{digest}",
    response_class=Response,
    responses=error_responses() | REFERRERS,
)
async def list_referrers(
    conn: ReadConn,
    caller: RegistryCaller,
    name: Name,
    digest: Digest,
    artifact_type: Annotated[str, Query(alias="artifactType", description="Of this type.")] = "",
    last: Annotated[str, Query(description="Only those behind this digest.")] = "",
) -> Response:
    """List the manifests whose `subject` is a manifest: signatures, SBOMs and the like."""
    check_digest(digest)
    headers = {**VERSION, "Content-Type": OCI_INDEX}
    if artifact_type:
        headers["OCI-Filters-Applied"] = "artifactType"
    found, is_cut = await _find_referrers(
        conn, caller, name, digest, artifact_type=artifact_type, after=last
    )
    if is_cut:
        query = {"artifactType": artifact_type} if artifact_type else {}
        query["last"] = found[-1].digest
        headers["Link"] = f'</v2/{name}/referrers/{digest}?{urlencode(query)}>; rel="next"'
    index = {
        "schemaVersion": 2,
        "mediaType": OCI_INDEX,
        "manifests": [_referrer(each) for each in found],
    }
    return JSONResponse(index, headers=headers)


async def _find_referrers(
    conn: Reader,
    caller: RegistryIdentity,
    name: ImageName,
    digest: str,
    *,
    artifact_type: str,
    after: str,
) -> tuple[list[Referrer], bool]:
    try:
        repo = await access.get_repo(conn, caller, name, Right.read)
    except ImageNotFound:
        # A 404 would tell clients that this registry knows no referrers.
        return [], False
    return await service.list_referrers(
        conn, key_of(repo, name), digest, artifact_type=artifact_type or None, after=after
    )


def _referrer(each: Referrer) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "mediaType": each.media_type,
        "digest": each.digest,
        "size": each.size,
    }
    if each.artifact_type is not None:
        shown["artifactType"] = each.artifact_type
    if each.annotations is not None:
        shown["annotations"] = each.annotations
    return shown


others = Router(tags=["containers"])


# Below all others: no page of the hub answers here, and its errors have the form of the protocol.
@others.api_route(
    "/v2/{rest:path}",
    methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
    include_in_schema=False,
    response_model=None,
)
async def refuse(_caller: RegistryTokenHolder, rest: str) -> NoReturn:
    """Say in the form of the protocol that there is nothing here, or not by this method."""
    raise HTTPException(405 if _KNOWN_PATHS.fullmatch(rest) else 404)


ROUTERS: tuple[Router, ...] = (
    router,
    blobs,
    others,
    token_routes.router,
    catalog_routes.router,
    *credentials_routes.ROUTERS,
)
