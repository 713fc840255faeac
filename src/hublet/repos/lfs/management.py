"""LFS files of a repository for its writers: list, delete for good, copy to another repository."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from hublet.core.database import Connection, Database, Reader
from hublet.events import UpdatedRef
from hublet.repos import blobs_store
from hublet.repos import service as repos
from hublet.repos.errors import RevisionNotFound
from hublet.repos.files import store as files_store
from hublet.repos.git import bare_repos, trees
from hublet.repos.git.trees import LfsPointer
from hublet.repos.lfs import history_rewrite
from hublet.repos.lfs.records import LocatedLfsFile
from hublet.repos.packs.workspaces import open_workspace
from hublet.repos.records import (
    MAIN,
    Card,
    LinkedBlob,
    Ref,
    RefTransaction,
    Repo,
    RepoAddress,
    Right,
)
from hublet.repos.refs import store as ref_store
from hublet.repos.refs.service import update_refs
from hublet.repos.usage import check_quota
from hublet.storage import chunker
from hublet.storage.records import Blob
from hublet.tokens.records import Caller

# The refs that are searched for the paths of files; a path is a help to people, no more.
_MOST_REFS = 20
# The commits of a ref that an estimate looks at.
_MOST_COMMITS = 100


async def list_files(
    database: Database, caller: Caller, address: RepoAddress, *, after: str, limit: int
) -> list[LocatedLfsFile]:
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.write)
        linked = await blobs_store.list_of_repo(conn, repo.id, after=after, limit=limit)
        refs = await ref_store.list_of(conn, repo.id)
    folder = await repos.open_folder(database, repo.id)
    # The path in main comes first: it is the one that people know.
    searched = sorted(refs, key=lambda ref: ref.name != MAIN)[:_MOST_REFS]
    return await asyncio.to_thread(_locate, folder, searched, linked)


def _locate(
    folder: Path, searched: Sequence[Ref], linked: Iterable[LinkedBlob]
) -> list[LocatedLfsFile]:
    files = {blob.sha256: LocatedLfsFile(blob=blob) for blob in linked}
    nameless = set(files)
    for ref in searched:
        if not nameless:
            break
        for path, pointer in _pointers(folder, ref.sha):
            if (digest := pointer.sha256) in nameless:
                nameless.remove(digest)
                files[digest] = replace(files[digest], path=path, ref=ref.name)
    return list(files.values())


def _pointers(folder: Path, commit: str) -> list[tuple[str, LfsPointer]]:
    try:
        entries = trees.list_tree(folder, commit, recursive=True)
    except RevisionNotFound:
        return []
    return [(entry.path, entry.lfs) for entry in entries if entry.lfs is not None]


async def estimate_freed_bytes(database: Database, repo: Repo, ref: str) -> int | None:
    """Estimate the bytes of large files that only this ref needs; None when there is no such ref.

    Only its newest commits are looked at, and files that another ref had once count as well.
    """
    async with database.read() as conn:
        known = {each.name: each.sha for each in await ref_store.list_of(conn, repo.id)}
    head = known.pop(ref, None)
    if head is None:
        return None
    folder = await repos.open_folder(database, repo.id)
    return await asyncio.to_thread(_size_beyond, folder, head, set(known.values()))


def _size_beyond(folder: Path, head: str, others: Iterable[str]) -> int:
    repository = bare_repos.open_repository(folder)
    walker = repository.walk(head)
    elsewhere: set[str] = set()
    for other in others:
        walker.hide(other)
        elsewhere |= {pointer.sha256 for _, pointer in _pointers(folder, other)}
    sizes = {
        pointer.sha256: pointer.size
        for commit in islice(walker, _MOST_COMMITS)
        for _, pointer in _pointers(folder, str(commit.id))
    }
    return sum(size for digest, size in sizes.items() if digest not in elsewhere)


async def delete(
    database: Database,
    caller: Caller,
    address: RepoAddress,
    digests: Sequence[str],
    *,
    rewrite_history: bool,
) -> None:
    """Delete the content of these files for good, from every commit of the repository.

    Their pointers stay, unless history is rewritten without them.
    """
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.write)
        current = await ref_store.list_of(conn, repo.id) if rewrite_history else []
    async with open_workspace(database, repo.id) as work:
        new = await asyncio.to_thread(
            history_rewrite.rewrite_without, work.folder, current, digests
        )
        transaction = RefTransaction(
            updates=tuple(
                UpdatedRef(ref=ref.name, old_sha=ref.sha, new_sha=new[ref.name])
                for ref in current
                if ref.name in new
            ),
            actor_id=caller.user_id,
            packs=await work.upload(),
        )
        async with database.transaction() as conn:
            repo = await repos.get(conn, caller, address, Right.write)
            if transaction.updates:
                # A card is never a large file, so it stays the same.
                card = Card(data=repo.card, tags=repo.tags)
                await update_refs(conn, repo, replace(transaction, card=card))
            await blobs_store.unlink(conn, repo.id, digests)


async def copy(
    conn: Connection,
    caller: Caller,
    source: RepoAddress,
    target: RepoAddress,
    digests: Sequence[str],
) -> list[str]:
    """Link files of one repository to another; return those that the first one lacks."""
    origin = await repos.get(conn, caller, source, Right.read)
    goal = await repos.get(conn, caller, target, Right.write)
    known = await _find_blobs(conn, origin, digests)
    await blobs_store.copy_layouts(conn, goal.id, known, source_id=origin.id)
    await blobs_store.link(conn, goal.id, [known[digest] for digest in sorted(known)])
    if known:
        await chunker.schedule_cutting(conn)
        await check_quota(conn, goal.owner_id, 0)
    return [digest for digest in digests if digest not in known]


async def _find_blobs(conn: Reader, origin: Repo, digests: Sequence[str]) -> dict[str, Blob]:
    if origin.type.has_git:
        return await blobs_store.find_in_repo(conn, origin.id, digests)
    held = await files_store.find_held(conn, origin.id, digests, with_uploads=False)
    return {digest: Blob(sha256=digest, size=each.size) for digest, each in held.items()}
