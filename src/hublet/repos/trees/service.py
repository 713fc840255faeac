"""Rules of reading a revision: who may, which commit it is, what is in it.

Names, sizes and history are open to everybody who may see a repository, as they are on the
public service; the gate of a gated repository stands before the content.
"""

import asyncio
from collections.abc import Sequence

from hublet.core.database import Database
from hublet.repos import service as repos
from hublet.repos.git import folders, history, trees
from hublet.repos.git.history import CommitInfo
from hublet.repos.git.trees import Entry
from hublet.repos.records import RepoAddress, Right
from hublet.repos.refs import service as refs
from hublet.repos.trees.records import Listed, Revision
from hublet.tokens.records import Caller


async def get_revision(
    database: Database,
    caller: Caller | None,
    address: RepoAddress,
    revision: str,
    *,
    right: Right = Right.see,
) -> Revision:
    """Return the commit that a revision means now; whether it exists only git can tell."""
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, right)
        commit = await refs.get_sha(conn, repo, revision)
    folder = folders.folder_of(database.hub.settings.database.data_dir, repo.id)
    return Revision(repo=repo, commit=commit, folder=folder)


async def list_entries(
    at: Revision, path: str, *, recursive: bool, after: str, limit: int
) -> list[Entry]:
    return await asyncio.to_thread(
        trees.list_tree,
        at.folder,
        at.commit,
        path=path,
        recursive=recursive,
        after=after,
        limit=limit,
    )


async def find_entries(at: Revision, paths: Sequence[str]) -> list[Entry]:
    """Return what is there of these paths; a folder may be written with a slash at its end."""
    bare = [path.removesuffix("/") for path in paths]
    return await asyncio.to_thread(trees.find_entries, at.folder, at.commit, bare)


async def with_last_commits(at: Revision, entries: Sequence[Entry]) -> list[Listed]:
    paths = [entry.path for entry in entries]
    commits = await asyncio.to_thread(history.last_commits, at.folder, at.commit, paths)
    return [Listed(entry=entry, last_commit=commits.get(entry.path)) for entry in entries]


async def list_commits(at: Revision, *, skip: int, limit: int) -> list[CommitInfo]:
    return await asyncio.to_thread(
        history.list_commits, at.folder, at.commit, skip=skip, limit=limit
    )


async def size_of(at: Revision, path: str) -> int:
    return await asyncio.to_thread(_size_of, at, path)


def _size_of(at: Revision, path: str) -> int:
    entries = trees.list_tree(at.folder, at.commit, path=path, recursive=True)
    return sum(entry.size for entry in entries)
