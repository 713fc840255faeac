"""Commits of a repository with what they changed, comparisons of two revisions, and blame.

History is open to everybody who may see a repository; what changed is content, which the gate of a
gated repository guards.
"""

import asyncio
from pathlib import Path

import pygit2

from hublet.core.database import Database
from hublet.core.errors import InvalidRequest, TooLarge
from hublet.repos import service as repos
from hublet.repos.browse.records import CommitView, Revision, RevisionComparison
from hublet.repos.browse.revisions import get_revision
from hublet.repos.errors import RevisionNotFound
from hublet.repos.git import bare_repos, diffs, history, trees
from hublet.repos.git import blame as git_blame
from hublet.repos.git.blame import Blame
from hublet.repos.git.diffs import CommitDiff, Divergence
from hublet.repos.records import RepoAddress, Right
from hublet.repos.refs import service as refs
from hublet.repos.refs.service import COMMIT_ID, SHORT_COMMIT_ID
from hublet.tokens.records import Caller

# How many commits a comparison lists.
MAX_COMMITS = 100
# Of a comparison as one text.
MAX_PATCH_BYTES = 8 << 20


class InvalidComparison(InvalidRequest):
    """A comparison does not name two revisions."""

    def __init__(self) -> None:
        super().__init__(
            "A comparison names two revisions: old...new since their last common commit, or old..new."
        )


class ComparisonTooLarge(TooLarge):
    """Two revisions differ by more than one response holds."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The two revisions differ by more than {limit} bytes: clone the repository and compare "
            "them with git diff."
        )


async def get_commit(
    database: Database, caller: Caller | None, address: RepoAddress, sha: str, *, path: str = ""
) -> CommitView:
    """Return a commit by its id, or the beginning of it, with what it changed since its parent.

    `path` names the one file whose change is wanted in full.
    """
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.see)
        may_read = await repos.may(conn, caller, repo, Right.read)
    folder = await repos.open_folder(database, repo.id)
    info, diff = await asyncio.to_thread(_read_commit, folder, sha, path, with_diff=may_read)
    return CommitView(repo=repo, info=info, diff=diff)


async def compare(
    database: Database,
    caller: Caller | None,
    address: RepoAddress,
    base: str,
    head: str,
    *,
    path: str = "",
) -> RevisionComparison:
    """Return what a revision has that another has not, since their last common commit."""
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.see)
        may_read = await repos.may(conn, caller, repo, Right.read)
        old, new = [await refs.get_starting_point(conn, repo, name) for name in (base, head)]
    folder = await repos.open_folder(database, repo.id)
    divergence, diff = await asyncio.to_thread(_compare, folder, old, new, path, with_diff=may_read)
    return RevisionComparison(repo=repo, divergence=divergence, diff=diff)


async def get_patch(
    database: Database, caller: Caller | None, address: RepoAddress, comparison: str
) -> str:
    """Return what changed between two revisions, as git writes it.

    `old...new` begins at their last common commit, `old..new` at the old one itself.
    """
    # No name of a branch has two dots in a row.
    base, dots, head = comparison.partition("..")
    since_merge_base = head.startswith(".")
    head = head.removeprefix(".")
    if not (base and dots and head):
        raise InvalidComparison
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.read)
        old, new = [await refs.get_starting_point(conn, repo, name) for name in (base, head)]
    folder = await repos.open_folder(database, repo.id)
    text, is_cut = await asyncio.to_thread(
        diffs.diff_text,
        folder,
        base=old,
        head=new,
        max_bytes=MAX_PATCH_BYTES,
        since_merge_base=since_merge_base,
    )
    if is_cut:
        raise ComparisonTooLarge(MAX_PATCH_BYTES)
    return text


async def blame(
    database: Database, caller: Caller | None, address: RepoAddress, revision: str, path: str
) -> tuple[Revision, Blame]:
    """Return the commit that each line of a file comes from."""
    place = await get_revision(database, caller, address, revision, right=Right.read)
    return place, await git_blame.blame(place.folder, place.commit, path)


def _read_commit(
    folder: Path, sha: str, path: str, *, with_diff: bool
) -> tuple[history.CommitInfo, CommitDiff | None]:
    info = history.describe(_find_commit(folder, sha))
    if not with_diff:
        return info, None
    parent = info.parents[0] if info.parents else None
    return info, diffs.diff_commits(folder, parent, info.id, path=path)


def _find_commit(folder: Path, sha: str) -> pygit2.Commit:
    if not (COMMIT_ID.fullmatch(sha) or SHORT_COMMIT_ID.fullmatch(sha)):
        raise RevisionNotFound(sha)
    return trees.get_commit(bare_repos.open_repository(folder), sha)


def _compare(
    folder: Path, base: str, head: str, path: str, *, with_diff: bool
) -> tuple[Divergence, CommitDiff | None]:
    divergence = diffs.diverge(folder, base, head, limit=MAX_COMMITS)
    if not with_diff:
        return divergence, None
    return divergence, diffs.diff_commits(folder, divergence.merge_base, divergence.head, path=path)
