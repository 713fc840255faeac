"""LFS files of a repository for its writers: list, delete for good, copy to another repository."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from hublet.core.database import Connection, Database
from hublet.events import UpdatedRef
from hublet.repos import blobs_store
from hublet.repos import service as repos
from hublet.repos.errors import RevisionNotFound
from hublet.repos.git import trees
from hublet.repos.lfs import history_rewrite
from hublet.repos.lfs.records import LocatedLfsFile
from hublet.repos.packs.workspaces import open_workspace
from hublet.repos.records import MAIN, Card, LinkedBlob, Ref, RefTransaction, RepoAddress, Right
from hublet.repos.refs import store as ref_store
from hublet.repos.refs.service import update_refs
from hublet.repos.usage import check_quota
from hublet.storage import chunker
from hublet.tokens.records import Caller

# The refs that are searched for the paths of files; a path is a help to people, no more.
_MOST_REFS = 20


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
        for path, digest in _pointers(folder, ref.sha):
            if digest in nameless:
                nameless.remove(digest)
                files[digest] = replace(files[digest], path=path, ref=ref.name)
    return list(files.values())


def _pointers(folder: Path, commit: str) -> list[tuple[str, str]]:
    try:
        entries = trees.list_tree(folder, commit, recursive=True)
    except RevisionNotFound:
        return []
    return [(entry.path, entry.lfs.sha256) for entry in entries if entry.lfs is not None]


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
    known = await blobs_store.find_in_repo(conn, origin.id, digests)
    await blobs_store.copy_layouts(conn, goal.id, known, source_id=origin.id)
    await blobs_store.link(conn, goal.id, [known[digest] for digest in sorted(known)])
    if known:
        await chunker.schedule_cutting(conn)
        await check_quota(conn, goal.owner_id, 0)
    return [digest for digest in digests if digest not in known]
