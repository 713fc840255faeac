"""Comparison of a pull request with its base, by git: diff, conflicts, merge commit.

Everything here blocks on the disk; call it from a thread.
"""

from datetime import datetime
from itertools import islice
from pathlib import Path

import pygit2

from hublet.community.discussions.records import PullRequestCommit, PullRequestDiff
from hublet.community.errors import MergeConflicts
from hublet.core.dataclasses import dataclass
from hublet.repos.git import bare_repos
from hublet.repos.git.objects import signature_of
from hublet.repos.git.trees import get_commit

# A diff shows whole files until it is this large.
MAX_DIFF_BYTES = 1 << 20
# How many commits one push adds to the history of a pull request; older ones are left out.
MAX_COMMITS = 100

# libgit2 writes merge commits, which must be on the disk before a ref points to them.
pygit2.settings.enable_fsync_gitdir(True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The commit of the base branch, and the head of the pull request."""

    base: str
    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """Author, time and message of a merge commit."""

    author: str
    at: datetime
    message: str


def diff(folder: Path, sides: Sides) -> PullRequestDiff:
    """Return the diff between the merge base and the head."""
    repository = bare_repos.open_repository(folder)
    head = get_commit(repository, sides.head)
    patches = filter(None, _merge_base_tree(repository, sides).diff_to_tree(head.tree))
    texts: list[str] = []
    bytes_left = MAX_DIFF_BYTES
    for patch in patches:
        data = patch.data
        bytes_left -= len(data)
        if bytes_left < 0:
            return PullRequestDiff(text="".join(texts), is_cut=True)
        texts.append(data.decode(errors="replace"))
    return PullRequestDiff(text="".join(texts), is_cut=False)


def sides_before(folder: Path, *, merge_commit: str, head: str) -> Sides:
    """Return the sides as they were before the head was merged."""
    parents = [
        str(oid) for oid in get_commit(bare_repos.open_repository(folder), merge_commit).parent_ids
    ]
    # A pull request that had nothing to add has no merge commit of its own.
    was_merged = parents[1:] == [head]
    return Sides(base=parents[0] if was_merged else head, head=head)


def conflicts(folder: Path, sides: Sides) -> list[str]:
    """Return the files that changed on both sides and conflict."""
    repository = bare_repos.open_repository(folder)
    return (
        []
        if _contains_head(repository, sides)
        else _conflicting_paths(_merge_trees(repository, sides))
    )


def merge(folder: Path, sides: Sides, request: MergeRequest) -> str | None:
    """Write the merge commit; None when the base contains the head already."""
    repository = bare_repos.open_repository(folder)
    if _contains_head(repository, sides):
        return None
    index = _merge_trees(repository, sides)
    if paths := _conflicting_paths(index):
        raise MergeConflicts(paths)
    who = signature_of(request.author, at=request.at)
    tree = index.write_tree(repository)
    parents = [pygit2.Oid(hex=sides.base), pygit2.Oid(hex=sides.head)]
    return str(repository.create_commit(None, who, who, request.message, tree, parents))


def new_commits(folder: Path, *, old: str, new: str) -> list[PullRequestCommit]:
    """Return the commits between two heads of a pull request, oldest first.

    Only first parents count: of a branch that was merged into it, only the merge commit.
    """
    repository = bare_repos.open_repository(folder)
    walker = repository.walk(get_commit(repository, new).id)
    walker.hide(get_commit(repository, old).id)
    walker.simplify_first_parent()
    newest = [
        PullRequestCommit(oid=str(commit.id), subject=subject_of(commit.message))
        for commit in islice(walker, MAX_COMMITS)
    ]
    return newest[::-1]


def subject_of(message: str) -> str:
    return message.strip().partition("\n")[0].strip()


def _contains_head(repository: pygit2.Repository, sides: Sides) -> bool:
    return str(repository.merge_base(sides.base, sides.head)) == sides.head


def _merge_base_tree(repository: pygit2.Repository, sides: Sides) -> pygit2.Tree:
    """Return the tree of the merge base; an empty one when the histories are unrelated."""
    common = repository.merge_base(sides.base, sides.head)
    if common is None:
        return repository[repository.TreeBuilder().write()].peel(pygit2.Tree)
    return get_commit(repository, str(common)).tree


def _merge_trees(repository: pygit2.Repository, sides: Sides) -> pygit2.Index:
    base, head = (get_commit(repository, sha) for sha in (sides.base, sides.head))
    return repository.merge_trees(_merge_base_tree(repository, sides), base.tree, head.tree)


def _conflicting_paths(index: pygit2.Index) -> list[str]:
    entries = (entry for conflict in index.conflicts or () for entry in conflict)
    return sorted({str(entry.path) for entry in entries if entry is not None})
