"""Commit history: the commits before one, and which commit last changed a path.

All but the asynchronous function block on the disk; call them from a thread.
"""

import asyncio
import heapq
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pygit2
from pygit2.enums import SortMode

from hublet.core.dataclasses import dataclass
from hublet.repos.errors import GitFailed, GitUnavailable
from hublet.repos.git import bare_repos, process
from hublet.repos.git.trees import find_item, get_commit, ids_in

# How far back `last_commits` searches; a path that did not change since then has no result.
MOST_COMMITS_SEARCHED = 1000
# How long the history of one path is searched.
LONGEST_SECONDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo:
    id: str
    title: str
    # What follows the title.
    message: str
    author_name: str
    author_email: str
    date: datetime
    parents: tuple[str, ...]


def list_commits(
    folder: Path, commit: str, *, skip: int = 0, limit: int | None = None
) -> list[CommitInfo]:
    """Return a commit and those before it, newest first."""
    repository = bare_repos.open_repository(folder)
    start = get_commit(repository, commit)
    # Unsorted is by date, parents after children, and lazy; any sorting reads the whole history.
    walker = repository.walk(start.id, SortMode.NONE)
    end = None if limit is None else skip + limit
    return [describe(found) for found in islice(walker, skip, end)]


async def list_path_commits(
    folder: Path, commit: str, path: str, *, skip: int, limit: int
) -> list[CommitInfo]:
    """Return those commits that changed a file or folder, newest first."""
    # Git itself skips what libgit2 would have to read; a path is no pattern.
    command = ("--literal-pathspecs", "rev-list", f"--skip={skip}", f"--max-count={limit}")
    try:
        async with (
            asyncio.timeout(LONGEST_SECONDS),
            process.start_git(
                folder, *command, commit, "--", path, stdin=asyncio.subprocess.DEVNULL
            ) as git,
        ):
            ids = (await git.stdout.read()).decode().split()
            await git.end()
    except (TimeoutError, GitFailed):
        raise GitUnavailable from None
    return await asyncio.to_thread(describe_all, folder, ids)


def describe_all(folder: Path, ids: list[str]) -> list[CommitInfo]:
    repository = bare_repos.open_repository(folder)
    return [describe(get_commit(repository, each)) for each in ids]


def commit_exists(folder: Path, commit: str) -> bool:
    found = bare_repos.open_repository(folder).get(commit)
    return isinstance(found, pygit2.Commit)


def describe(commit: pygit2.Commit) -> CommitInfo:
    title, _, rest = commit.message.partition("\n")
    return CommitInfo(
        id=str(commit.id),
        title=title,
        message=rest.strip("\n"),
        author_name=commit.author.name or "",
        author_email=commit.author.email or "",
        date=datetime.fromtimestamp(commit.commit_time, UTC),
        parents=tuple(str(parent) for parent in commit.parent_ids),
    )


def last_commits(
    folder: Path, commit: str, paths: Iterable[str], *, farthest: int = MOST_COMMITS_SEARCHED
) -> dict[str, CommitInfo]:
    """Return, by path, the commit that last changed it, if it is not too far back."""
    start = get_commit(bare_repos.open_repository(folder), commit)
    contents = _FolderContents()
    waiting = {start.id: {path for path in paths if contents.oid(start, path) is not None}}
    queue = [_NewestFirst(start)]
    found: dict[str, CommitInfo] = {}
    for _ in range(farthest):
        if not queue:
            break
        current = heapq.heappop(queue).commit
        for path, origin in _origins(contents, current, waiting.pop(current.id)):
            if origin is None:
                found[path] = describe(current)
                continue
            if origin.id not in waiting:
                heapq.heappush(queue, _NewestFirst(origin))
            waiting.setdefault(origin.id, set()).add(path)
        contents.forget(current)
    return found


class _NewestFirst:
    """Heap entry of a commit: the newest comes first."""

    __slots__ = ("commit",)

    def __init__(self, commit: pygit2.Commit) -> None:
        self.commit = commit

    def __lt__(self, other: "_NewestFirst") -> bool:
        return self.commit.commit_time > other.commit.commit_time


class _FolderContents:
    """The ids of what lies in folders of commits; each folder is read once, not for each path."""

    def __init__(self) -> None:
        self._known: dict[pygit2.Oid, dict[str, dict[bytes, bytes]]] = {}

    def oid(self, commit: pygit2.Commit, path: str) -> bytes | None:
        folder, _, name = path.rpartition("/")
        folders = self._known.setdefault(commit.id, {})
        if folder not in folders:
            root = commit.tree
            tree = find_item(root, folder) if folder else root
            folders[folder] = ids_in(tree) if isinstance(tree, pygit2.Tree) else {}
        return folders[folder].get(name.encode())

    def forget(self, commit: pygit2.Commit) -> None:
        self._known.pop(commit.id, None)


def _origins(
    contents: _FolderContents, commit: pygit2.Commit, paths: set[str]
) -> Iterable[tuple[str, pygit2.Commit | None]]:
    """Pair each path with a parent where it is the same, or with None where it changed here."""
    parents = commit.parents
    for parent in parents:
        if parent.tree_id == commit.tree_id:
            return [(path, parent) for path in paths]
    return [(path, _same_in(contents, parents, path, contents.oid(commit, path))) for path in paths]


def _same_in(
    contents: _FolderContents, parents: list[pygit2.Commit], path: str, oid: bytes | None
) -> pygit2.Commit | None:
    return next((parent for parent in parents if contents.oid(parent, path) == oid), None)
