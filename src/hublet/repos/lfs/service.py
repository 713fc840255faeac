"""LFS batch API: where to upload and download large files, for callers who may."""

import re

from hublet.core.database import Reader
from hublet.core.ids import new_request_id
from hublet.repos import blobs_store
from hublet.repos.commits.pull_requests import check_upload
from hublet.repos.errors import InvalidUpload, ObjectNotFound
from hublet.repos.lfs.links import Link, sign
from hublet.repos.lfs.records import (
    PART_SIZE,
    ObjectRefusal,
    ObjectRequest,
    ObjectResponse,
    TransferAction,
    part_size_of,
    part_sizes,
)
from hublet.repos.push import service as push
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.repos.usage import check_quota
from hublet.repos.xet.addresses import cas_url, token_url
from hublet.repos.xet.tokens import new_token, sign_token
from hublet.storage.contents import download_address
from hublet.storage.epochs import get_epoch
from hublet.storage.errors import StorageFull
from hublet.storage.records import Blob, Content
from hublet.tokens.errors import GitTokenNeeded
from hublet.tokens.records import Caller

_SHA256 = re.compile(r"[0-9a-f]{64}")


async def prepare_uploads(
    conn: Reader,
    caller: Caller | None,
    address: RepoAddress,
    objects: list[ObjectRequest],
    *,
    in_parts: bool,
) -> list[ObjectResponse]:
    """Return for each object where to upload it, or that this repository has it already.

    That another repository has the same bytes does not count: it would tell strangers so, and a
    caller who names a digest has not shown that they have the bytes.
    """
    repo, _ = await _get_for_upload(conn, caller, address)
    base_url = conn.hub.settings.base_url
    verify = TransferAction(href=f"{repo.url(base_url)}.git/info/lfs/objects/verify")
    settled = await _find_settled(conn, repo, objects)
    return [
        settled.get(each)
        or ObjectResponse(
            request=each, upload=_upload_action(conn, repo, each, in_parts=in_parts), verify=verify
        )
        for each in objects
    ]


async def prepare_xet_uploads(
    conn: Reader,
    caller: Caller | None,
    address: RepoAddress,
    objects: list[ObjectRequest],
    *,
    revision: str,
) -> list[ObjectResponse]:
    """Return the same, but the new objects go through Xet, all with one access token."""
    repo, caller = await _get_for_upload(conn, caller, address)
    settled = await _find_settled(conn, repo, objects)
    upload = await _xet_action(conn, caller, repo, revision)
    return [settled.get(each) or ObjectResponse(request=each, upload=upload) for each in objects]


async def _get_for_upload(
    conn: Reader, caller: Caller | None, address: RepoAddress
) -> tuple[Repo, Caller]:
    repo = await push.get_or_challenge(conn, caller, address, Right.see)
    if caller is None:
        raise GitTokenNeeded
    await check_upload(conn, caller, repo)
    return repo, caller


async def _find_settled(
    conn: Reader, repo: Repo, objects: list[ObjectRequest]
) -> dict[ObjectRequest, ObjectResponse]:
    """Return the responses to objects that are refused or known, so not to be uploaded."""
    known = await blobs_store.find_in_repo(conn, repo.id, [each.oid for each in objects])
    lack_of_room = await _find_lack_of_room(conn, repo, objects, known)
    largest = conn.hub.settings.limits.file_bytes
    settled = {}
    for request in objects:
        refusal = _refusal(request, known, largest=largest)
        if refusal is None and request.oid not in known:
            refusal = lack_of_room
        if refusal is not None or request.oid in known:
            settled[request] = ObjectResponse(request=request, refusal=refusal)
    return settled


async def _find_lack_of_room(
    conn: Reader, repo: Repo, objects: list[ObjectRequest], known: dict[str, Blob]
) -> ObjectRefusal | None:
    """Return the refusal of each new object when the owner has no room for all of them."""
    sizes = {each.oid: max(each.size, 0) for each in objects if each.oid not in known}
    if not sizes:
        return None
    try:
        await check_quota(conn, repo.owner_id, sum(sizes.values()))
    except StorageFull as error:
        return ObjectRefusal(code=error.status, message=error.message)
    return None


def _refusal(
    request: ObjectRequest, known: dict[str, Blob], *, largest: int
) -> ObjectRefusal | None:
    if not _SHA256.fullmatch(request.oid):
        return ObjectRefusal(code=422, message="oid must be a SHA-256 in lower-case hexadecimal.")
    if request.size < 0:
        return ObjectRefusal(code=422, message="size must be at least 0.")
    if request.size > largest:
        return ObjectRefusal(code=422, message=f"A file may have at most {largest} bytes.")
    if request.oid in known and known[request.oid].size != request.size:
        return ObjectRefusal(code=422, message=f"size must be that of the object {request.oid}.")
    return None


async def _xet_action(conn: Reader, caller: Caller, repo: Repo, revision: str) -> TransferAction:
    token = new_token(repo, caller, right="write", epoch=await get_epoch(conn))
    header = {
        "X-Xet-Cas-Url": await cas_url(conn, repo.id),
        "X-Xet-Access-Token": sign_token(token, conn.hub.keys),
        "X-Xet-Token-Expiration": str(token.expires),
        "X-Xet-Session-Id": new_request_id(),
    }
    base_url = conn.hub.settings.base_url
    href = token_url(base_url, repo, right="write", revision=revision)
    return TransferAction(href=href, header=header)


def _upload_action(
    conn: Reader, repo: Repo, request: ObjectRequest, *, in_parts: bool
) -> TransferAction:
    if in_parts and request.size > PART_SIZE:
        return _multipart_action(conn, repo, request)
    return _basic_action(conn, repo, request, "upload")


def _basic_action(conn: Reader, repo: Repo, request: ObjectRequest, act: str) -> TransferAction:
    link = Link(act=act, repo_id=repo.id, oid=request.oid, size=request.size)
    return TransferAction(href=_signed_url(conn, link))


def _multipart_action(conn: Reader, repo: Repo, request: ObjectRequest) -> TransferAction:
    sizes = part_sizes(request.size)
    parts = [
        Link(act="part", repo_id=repo.id, oid=request.oid, size=size, part=number)
        for number, size in enumerate(sizes, start=1)
    ]
    complete = Link(
        act="complete", repo_id=repo.id, oid=request.oid, size=request.size, part=len(sizes)
    )
    # Each part has its address under its number.
    addresses = {str(link.part): _signed_url(conn, link) for link in parts}
    chunk_size = {"chunk_size": str(part_size_of(request.size))}
    return TransferAction(href=_signed_url(conn, complete), header=chunk_size | addresses)


def _signed_url(conn: Reader, link: Link) -> str:
    return sign(link, conn.hub.keys, base_url=conn.hub.settings.base_url)


async def prepare_downloads(
    conn: Reader, caller: Caller | None, address: RepoAddress, objects: list[ObjectRequest]
) -> list[ObjectResponse]:
    """Return for each object where to download it, or that this repository does not have it."""
    repo = await push.get_or_challenge(conn, caller, address, Right.read)
    oids = [each.oid for each in objects]
    known = await blobs_store.find_contents_in_repo(conn, repo.id, oids)
    return [_download_response(conn, repo, each, known) for each in objects]


def _download_response(
    conn: Reader, repo: Repo, request: ObjectRequest, known: dict[str, Content]
) -> ObjectResponse:
    if request.oid not in known:
        refusal = ObjectRefusal(code=404, message="There is no such object in this repository.")
        return ObjectResponse(request=request, refusal=refusal)
    if known[request.oid].size != request.size:
        refusal = ObjectRefusal(code=422, message=f"size must be that of the object {request.oid}.")
        return ObjectResponse(request=request, refusal=refusal)
    address = download_address(conn.hub.settings, known[request.oid])
    download = None if address is None else TransferAction(href=address)
    download = download or _basic_action(conn, repo, request, "download")
    return ObjectResponse(request=request, download=download)


async def verify(
    conn: Reader, caller: Caller | None, address: RepoAddress, request: ObjectRequest
) -> None:
    """Refuse unless this repository has the object with that size."""
    repo, _ = await _get_for_upload(conn, caller, address)
    blob = (await blobs_store.find_in_repo(conn, repo.id, [request.oid])).get(request.oid)
    if blob is None:
        raise ObjectNotFound(request.oid)
    if blob.size != request.size:
        raise InvalidUpload(f"size must be that of the object {request.oid}.")
