"""Revisions: how a path names one, its tree, its history, and the cursors of their pages.

Names, sizes and history are open to everybody who may see a repository, as they are on the public
service; the gate of a gated repository guards the content.
"""

import asyncio
from collections.abc import Sequence
from urllib.parse import quote, unquote

from hublet.core.database import Database
from hublet.core.paging import InvalidCursor
from hublet.repos import blobs_store
from hublet.repos import service as repos
from hublet.repos.browse.records import ListedEntry, Revision
from hublet.repos.git import bare_repos, history, trees
from hublet.repos.git.history import CommitInfo
from hublet.repos.git.trees import GitEntry
from hublet.repos.records import RepoAddress, Right
from hublet.repos.refs import service as refs
from hublet.repos.refs.service import COMMIT_ID
from hublet.tokens.records import Caller

# Refs with slashes of their own that people write without encoding them.
_UNENCODED_REFS = (("refs", "pr"), ("refs", "convert"))
# A cursor that skips more commits than this has no page.
_MOST_DIGITS = 9


def split_revision_and_path(raw_path: str, rest: str) -> tuple[str, str]:
    """Return the revision and the path that the end of an address names.

    `rest` is that end as the framework decoded it; there `feat%2Fx/a.txt` and `feat/x%2Fa.txt`
    look the same. In the raw path the revision is what stands before the first slash.
    """
    segments = _raw_end(raw_path, rest)
    count = 3 if tuple(segments[:2]) in _UNENCODED_REFS else 1
    revision, path = "/".join(segments[:count]), "/".join(segments[count:])
    return unquote(revision), unquote(path).removesuffix("/")


def _raw_end(raw_path: str, rest: str) -> list[str]:
    segments = raw_path.split("/")
    for start in range(len(segments)):
        if unquote("/".join(segments[start:])) == rest:
            return segments[start:]
    return rest.split("/")


def write_tree_cursor(commit: str, last: str) -> str:
    # Names of files may have characters that a cursor may not.
    return f"{commit}:{quote(last, safe='/')}"


def read_tree_cursor(position: str) -> tuple[str, str]:
    commit, colon, last = position.partition(":")
    if not colon or not COMMIT_ID.fullmatch(commit):
        raise InvalidCursor
    return commit, unquote(last)


def read_commit_count(text: str) -> int:
    """Return how many commits the pages before had; none before the first page."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        raise InvalidCursor
    return int(text)


async def get_revision(
    database: Database,
    caller: Caller | None,
    address: RepoAddress,
    revision: str,
    *,
    right: Right = Right.see,
    may_be_old: bool = False,
) -> Revision:
    """Return the commit that a revision means now; whether it exists only git can tell.

    One that may be old is read from a replica. Packs are listed after it and on the primary: what
    a ref pointed to some seconds ago is in them, and stays there for days.
    """
    async with database.read_replica() if may_be_old else database.read() as conn:
        repo = await repos.get(conn, caller, address, right)
        commit = await refs.get_sha(conn, repo, revision)
    folder = await repos.open_folder(database, repo.id)
    return Revision(repo=repo, commit=commit, folder=folder)


async def list_entries(
    revision: Revision, path: str, *, recursive: bool, after: str, limit: int
) -> list[GitEntry]:
    return await asyncio.to_thread(
        trees.list_tree,
        revision.folder,
        revision.commit,
        path=path,
        recursive=recursive,
        after=after,
        limit=limit,
    )


async def find_entries(revision: Revision, paths: Sequence[str]) -> list[GitEntry]:
    """Return what is there of these paths; a folder may be written with a slash at its end."""
    bare = [path.removesuffix("/") for path in paths]
    return await asyncio.to_thread(trees.find_entries, revision.folder, revision.commit, bare)


async def describe_entries(
    database: Database, revision: Revision, entries: Sequence[GitEntry], *, with_commits: bool
) -> list[ListedEntry]:
    """Return entries with their hashes of Xet, and if requested with their last commits."""
    commits = await _last_commits(revision, entries) if with_commits else {}
    hashes = await _xet_hashes(database, revision, entries)
    return [
        ListedEntry(
            entry=entry,
            xet_hash=hashes.get(entry.lfs.sha256) if entry.lfs else None,
            last_commit=commits.get(entry.path),
        )
        for entry in entries
    ]


async def _last_commits(revision: Revision, entries: Sequence[GitEntry]) -> dict[str, CommitInfo]:
    paths = [entry.path for entry in entries]
    return await asyncio.to_thread(history.last_commits, revision.folder, revision.commit, paths)


async def _xet_hashes(
    database: Database, revision: Revision, entries: Sequence[GitEntry]
) -> dict[str, str]:
    digests = {entry.lfs.sha256 for entry in entries if entry.lfs is not None}
    if not digests:
        return {}
    async with database.read() as conn:
        held = await blobs_store.find_in_repo(conn, revision.repo.id, digests)
        return await blobs_store.find_xet_hashes(conn, revision.repo.id, held)


async def list_commits(revision: Revision, *, skip: int, limit: int) -> list[CommitInfo]:
    return await asyncio.to_thread(
        history.list_commits, revision.folder, revision.commit, skip=skip, limit=limit
    )


async def list_path_commits(
    revision: Revision, path: str, *, skip: int, limit: int
) -> list[CommitInfo]:
    """Return those commits of a revision that changed a file or folder."""
    commit = await asyncio.to_thread(_commit_id, revision)
    return await history.list_path_commits(revision.folder, commit, path, skip=skip, limit=limit)


def _commit_id(revision: Revision) -> str:
    repository = bare_repos.open_repository(revision.folder)
    return str(trees.get_commit(repository, revision.commit).id)


async def size_of(revision: Revision, path: str) -> int:
    return await asyncio.to_thread(_size_of, revision, path)


def _size_of(revision: Revision, path: str) -> int:
    entries = trees.list_tree(revision.folder, revision.commit, path=path, recursive=True)
    return sum(entry.size for entry in entries)
