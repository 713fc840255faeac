"""LFS batch: who may send and get which large files, and where."""

import re

from hublet.core.database import Reader
from hublet.repos import blobs_store as blobs
from hublet.repos import service as repos
from hublet.repos.commits.pull_requests import may_propose
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
from hublet.repos.push import service as git
from hublet.repos.records import Blob, Repo, RepoAddress, Right
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
    """Tell for each object where to send it, or that it is here already.

    It is here only when this repository brought it: that another one has the same bytes is
    nobody's business, and whoever names a digest has yet to show that they have them too.
    """
    repo = await git.get_or_challenge(conn, caller, address, Right.see)
    if caller is None:
        raise GitTokenNeeded
    await _check_upload(conn, caller, repo)
    known = await blobs.find_in_repo(conn, repo.id, [each.oid for each in objects])
    return [_upload_response(conn, repo, each, known, in_parts=in_parts) for each in objects]


async def _check_upload(conn: Reader, caller: Caller, repo: Repo) -> None:
    # Whoever may open a pull request may upload its files.
    if repo.discussions_disabled or not await may_propose(conn, caller, repo):
        await repos.check(conn, caller, repo, Right.write)


def _upload_response(
    conn: Reader, repo: Repo, wanted: ObjectRequest, known: dict[str, Blob], *, in_parts: bool
) -> ObjectResponse:
    refusal = _refusal(wanted, known, largest=conn.hub.settings.limits.file_bytes)
    if refusal is not None:
        return ObjectResponse(wanted=wanted, refusal=refusal)
    if wanted.oid in known:
        return ObjectResponse(wanted=wanted)
    base_url = conn.hub.settings.base_url
    verify = TransferAction(href=f"{repo.url(base_url)}.git/info/lfs/objects/verify")
    if in_parts and wanted.size > PART_SIZE:
        return ObjectResponse(
            wanted=wanted, upload=_multipart_action(conn, repo, wanted), verify=verify
        )
    return ObjectResponse(
        wanted=wanted, upload=_basic_action(conn, repo, wanted, "upload"), verify=verify
    )


def _refusal(
    wanted: ObjectRequest, known: dict[str, Blob], *, largest: int
) -> ObjectRefusal | None:
    if not _SHA256.fullmatch(wanted.oid):
        return ObjectRefusal(code=422, message="oid must be a SHA-256 in lower-case hexadecimal.")
    if wanted.size < 0:
        return ObjectRefusal(code=422, message="size must be at least 0.")
    if wanted.size > largest:
        return ObjectRefusal(code=422, message=f"A file may have at most {largest} bytes.")
    if wanted.oid in known and known[wanted.oid].size != wanted.size:
        return ObjectRefusal(code=422, message=f"size must be that of the object {wanted.oid}.")
    return None


def _basic_action(conn: Reader, repo: Repo, wanted: ObjectRequest, act: str) -> TransferAction:
    link = Link(act=act, repo_id=repo.id, oid=wanted.oid, size=wanted.size)
    return TransferAction(href=_signed_url(conn, link))


def _multipart_action(conn: Reader, repo: Repo, wanted: ObjectRequest) -> TransferAction:
    sizes = part_sizes(wanted.size)
    parts = [
        Link(act="part", repo_id=repo.id, oid=wanted.oid, size=size, part=number)
        for number, size in enumerate(sizes, start=1)
    ]
    complete = Link(
        act="complete", repo_id=repo.id, oid=wanted.oid, size=wanted.size, part=len(sizes)
    )
    return TransferAction(
        href=_signed_url(conn, complete),
        part_size=part_size_of(wanted.size),
        parts=tuple(_signed_url(conn, link) for link in parts),
    )


def _signed_url(conn: Reader, link: Link) -> str:
    return sign(link, conn.hub.keys, base_url=conn.hub.settings.base_url)


async def prepare_downloads(
    conn: Reader, caller: Caller | None, address: RepoAddress, objects: list[ObjectRequest]
) -> list[ObjectResponse]:
    """Tell for each object where to get it, or that this repository does not have it."""
    repo = await git.get_or_challenge(conn, caller, address, Right.read)
    known = await blobs.find_in_repo(conn, repo.id, [each.oid for each in objects])
    return [_download_response(conn, repo, each, known) for each in objects]


def _download_response(
    conn: Reader, repo: Repo, wanted: ObjectRequest, known: dict[str, Blob]
) -> ObjectResponse:
    if wanted.oid not in known:
        refusal = ObjectRefusal(code=404, message="There is no such object in this repository.")
        return ObjectResponse(wanted=wanted, refusal=refusal)
    if known[wanted.oid].size != wanted.size:
        refusal = ObjectRefusal(code=422, message=f"size must be that of the object {wanted.oid}.")
        return ObjectResponse(wanted=wanted, refusal=refusal)
    return ObjectResponse(wanted=wanted, download=_basic_action(conn, repo, wanted, "download"))


async def verify(
    conn: Reader, caller: Caller | None, address: RepoAddress, wanted: ObjectRequest
) -> None:
    """Refuse unless this repository has the object, and it has that size."""
    repo = await git.get_or_challenge(conn, caller, address, Right.see)
    if caller is None:
        raise GitTokenNeeded
    await _check_upload(conn, caller, repo)
    found = (await blobs.find_in_repo(conn, repo.id, [wanted.oid])).get(wanted.oid)
    if found is None:
        raise ObjectNotFound(wanted.oid)
    if found.size != wanted.size:
        raise InvalidUpload(f"size must be that of the object {wanted.oid}.")
