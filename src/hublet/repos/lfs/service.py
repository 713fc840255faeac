"""Rules of large files: who may send and get which, and where."""

import re

from hublet.core.database import Reader
from hublet.repos import service as repos
from hublet.repos.blobs import store as blobs
from hublet.repos.blobs.records import Blob
from hublet.repos.lfs.errors import ObjectNotFound, SizeWrong
from hublet.repos.lfs.links import Link, signed
from hublet.repos.lfs.records import (
    PART_SIZE,
    Action,
    Answer,
    Refusal,
    Wanted,
    part_size_of,
    part_sizes,
)
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.repos.smart_http import service as git
from hublet.tokens.errors import GitTokenNeeded
from hublet.tokens.records import Caller

_SHA256 = re.compile(r"[0-9a-f]{64}")


async def batch_to_upload(
    conn: Reader,
    caller: Caller | None,
    address: RepoAddress,
    objects: list[Wanted],
    *,
    in_parts: bool,
) -> list[Answer]:
    """Tell for each object where to send it, or that it is here already.

    It is here only when this repository brought it: that another one has the same bytes is
    nobody's business, and whoever names a digest has yet to show that they have them too.
    """
    repo = await git.get(conn, caller, address, Right.see)
    if caller is None:
        raise GitTokenNeeded
    await _check_upload(conn, caller, repo)
    known = await blobs.find_in_repo(conn, repo.id, [each.oid for each in objects])
    return [_to_upload(conn, repo, each, known, in_parts=in_parts) for each in objects]


async def _check_upload(conn: Reader, caller: Caller, repo: Repo) -> None:
    # Whoever may open a pull request brings its files along.
    discusses = not repo.discussions_disabled and await repos.may(conn, caller, repo, Right.discuss)
    if not discusses:
        await repos.check(conn, caller, repo, Right.write)


def _to_upload(
    conn: Reader, repo: Repo, wanted: Wanted, known: dict[str, Blob], *, in_parts: bool
) -> Answer:
    refusal = _refusal(wanted, known, largest=conn.hub.settings.limits.file_bytes)
    if refusal is not None:
        return Answer(wanted=wanted, refusal=refusal)
    if wanted.oid in known:
        return Answer(wanted=wanted)
    base_url = conn.hub.settings.base_url
    verify = Action(href=f"{repo.url(base_url)}.git/info/lfs/objects/verify")
    if in_parts and wanted.size > PART_SIZE:
        return Answer(wanted=wanted, upload=_in_parts(conn, repo, wanted), verify=verify)
    return Answer(wanted=wanted, upload=_whole(conn, repo, wanted, "upload"), verify=verify)


def _refusal(wanted: Wanted, known: dict[str, Blob], *, largest: int) -> Refusal | None:
    if not _SHA256.fullmatch(wanted.oid):
        return Refusal(code=422, message="oid must be a SHA-256 in lower-case hexadecimal.")
    if wanted.size < 0:
        return Refusal(code=422, message="size must be at least 0.")
    if wanted.size > largest:
        return Refusal(code=422, message=f"A file may have at most {largest} bytes.")
    if wanted.oid in known and known[wanted.oid].size != wanted.size:
        return Refusal(code=422, message=f"size must be that of the object {wanted.oid}.")
    return None


def _whole(conn: Reader, repo: Repo, wanted: Wanted, act: str) -> Action:
    link = Link(act=act, repo_id=repo.id, oid=wanted.oid, size=wanted.size)
    return Action(href=_signed(conn, link))


def _in_parts(conn: Reader, repo: Repo, wanted: Wanted) -> Action:
    sizes = part_sizes(wanted.size)
    parts = [
        Link(act="part", repo_id=repo.id, oid=wanted.oid, size=size, part=number)
        for number, size in enumerate(sizes, start=1)
    ]
    complete = Link(
        act="complete", repo_id=repo.id, oid=wanted.oid, size=wanted.size, part=len(sizes)
    )
    return Action(
        href=_signed(conn, complete),
        part_size=part_size_of(wanted.size),
        parts=tuple(_signed(conn, link) for link in parts),
    )


def _signed(conn: Reader, link: Link) -> str:
    return signed(link, conn.hub.keys, base_url=conn.hub.settings.base_url)


async def batch_to_download(
    conn: Reader, caller: Caller | None, address: RepoAddress, objects: list[Wanted]
) -> list[Answer]:
    """Tell for each object where to get it, or that this repository does not have it."""
    repo = await git.get(conn, caller, address, Right.read)
    known = await blobs.find_in_repo(conn, repo.id, [each.oid for each in objects])
    return [_to_download(conn, repo, each, known) for each in objects]


def _to_download(conn: Reader, repo: Repo, wanted: Wanted, known: dict[str, Blob]) -> Answer:
    if wanted.oid not in known:
        refusal = Refusal(code=404, message="There is no such object in this repository.")
        return Answer(wanted=wanted, refusal=refusal)
    if known[wanted.oid].size != wanted.size:
        refusal = Refusal(code=422, message=f"size must be that of the object {wanted.oid}.")
        return Answer(wanted=wanted, refusal=refusal)
    return Answer(wanted=wanted, download=_whole(conn, repo, wanted, "download"))


async def verify(conn: Reader, caller: Caller | None, address: RepoAddress, wanted: Wanted) -> None:
    """Refuse unless this repository has the object, and it has that size."""
    repo = await git.get(conn, caller, address, Right.see)
    if caller is None:
        raise GitTokenNeeded
    await _check_upload(conn, caller, repo)
    found = (await blobs.find_in_repo(conn, repo.id, [wanted.oid])).get(wanted.oid)
    if found is None:
        raise ObjectNotFound(wanted.oid)
    if found.size != wanted.size:
        raise SizeWrong(wanted.oid)
