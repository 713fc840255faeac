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
from hublet.repos.git import bare_repos, diffs
from hublet.repos.git.diffs import CommitDiff
from hublet.repos.git.history import CommitInfo, describe
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
    text, is_cut = diffs.diff_text(
        folder, base=sides.base, head=sides.head, max_bytes=MAX_DIFF_BYTES
    )
    return PullRequestDiff(text=text, is_cut=is_cut)


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
        if contains_head(repository, sides)
        else conflicting_paths(merge_trees(repository, sides))
    )


def merge(folder: Path, sides: Sides, request: MergeRequest) -> str | None:
    """Write the merge commit; None when the base contains the head already."""
    repository = bare_repos.open_repository(folder)
    if contains_head(repository, sides):
        return None
    index = merge_trees(repository, sides)
    if paths := conflicting_paths(index):
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


def list_commits(folder: Path, sides: Sides) -> list[CommitInfo]:
    """Return the commits that a pull request brings along, oldest first; not too old ones only."""
    repository = bare_repos.open_repository(folder)
    walker = repository.walk(get_commit(repository, sides.head).id)
    walker.hide(get_commit(repository, sides.base).id)
    return [describe(commit) for commit in islice(walker, MAX_COMMITS)][::-1]


def diff_files(folder: Path, sides: Sides, *, path: str = "") -> CommitDiff:
    """Return what a pull request changes file by file, within limits; or all of one file."""
    common = bare_repos.open_repository(folder).merge_base(sides.base, sides.head)
    return diffs.diff_commits(folder, str(common) if common else None, sides.head, path=path)


def count_files(folder: Path, sides: Sides) -> int:
    """Count the files that differ between the merge base and the head; none of them is read."""
    repository = bare_repos.open_repository(folder)
    head = get_commit(repository, sides.head)
    common = diffs.merge_base_tree(repository, base=sides.base, head=sides.head)
    return len(common.diff_to_tree(head.tree))


def subject_of(message: str) -> str:
    return message.strip().partition("\n")[0].strip()


def contains_head(repository: pygit2.Repository, sides: Sides) -> bool:
    return str(repository.merge_base(sides.base, sides.head)) == sides.head


def merge_trees(repository: pygit2.Repository, sides: Sides) -> pygit2.Index:
    base, head = (get_commit(repository, sha) for sha in (sides.base, sides.head))
    common = diffs.merge_base_tree(repository, base=sides.base, head=sides.head)
    return repository.merge_trees(common, base.tree, head.tree)


def conflicting_paths(index: pygit2.Index) -> list[str]:
    entries = (entry for conflict in index.conflicts or () for entry in conflict)
    return sorted({str(entry.path) for entry in entries if entry is not None})
