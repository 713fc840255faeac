"""Commit history: the commits before one, and which commit last changed a path.

Everything here blocks on the disk; call it from a thread.
"""

import heapq
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pygit2
from pygit2.enums import SortMode

from hublet.core.dataclasses import dataclass
from hublet.repos.git import bare_repos
from hublet.repos.git.trees import find_item, get_commit

# How far back `last_commits` searches; a path that did not change since then has no result.
MOST_COMMITS_SEARCHED = 1000


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
    waiting = {start.id: {path for path in paths if _oid(start, path) is not None}}
    queue = [_NewestFirst(start)]
    found: dict[str, CommitInfo] = {}
    for _ in range(farthest):
        if not queue:
            break
        current = heapq.heappop(queue).commit
        for path, origin in _origins(current, waiting.pop(current.id)):
            if origin is None:
                found[path] = describe(current)
                continue
            if origin.id not in waiting:
                heapq.heappush(queue, _NewestFirst(origin))
            waiting.setdefault(origin.id, set()).add(path)
    return found


class _NewestFirst:
    """Heap entry of a commit: the newest comes first."""

    __slots__ = ("commit",)

    def __init__(self, commit: pygit2.Commit) -> None:
        self.commit = commit

    def __lt__(self, other: "_NewestFirst") -> bool:
        return self.commit.commit_time > other.commit.commit_time


def _origins(commit: pygit2.Commit, paths: set[str]) -> Iterable[tuple[str, pygit2.Commit | None]]:
    """Pair each path with a parent where it is the same, or with None where it changed here."""
    parents = commit.parents
    for parent in parents:
        if parent.tree_id == commit.tree_id:
            return ((path, parent) for path in paths)
    return ((path, _same_in(parents, path, _oid(commit, path))) for path in paths)


def _same_in(
    parents: list[pygit2.Commit], path: str, oid: pygit2.Oid | None
) -> pygit2.Commit | None:
    return next((parent for parent in parents if _oid(parent, path) == oid), None)


def _oid(commit: pygit2.Commit, path: str) -> pygit2.Oid | None:
    item = find_item(commit.tree, path)
    return None if item is None else item.id
