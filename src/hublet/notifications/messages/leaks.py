"""Leaked credentials: found in new commits of public repositories, their owners notified."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import field
from itertools import islice
from pathlib import Path

import pygit2
from pygit2.enums import SortMode

from hublet.core.database import Connection, Database
from hublet.core.dataclasses import dataclass
from hublet.core.outbox import publish
from hublet.events import SecretDetected, UpdatedRef
from hublet.repos import service as repos
from hublet.repos import store as repo_rows
from hublet.repos.git import bare_repos
from hublet.repos.records import Repo
from hublet.tokens import service as tokens
from hublet.tokens.format import has_valid_checksum


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakSearch:
    """What was brought into a repository, as a task keeps it."""

    repo_id: str
    updated_refs: tuple[UpdatedRef, ...]
    # Where main is; what is there already is not new on another branch.
    head_sha: str | None

    @property
    def starts(self) -> list[str]:
        return [each.new_sha for each in self.updated_refs if each.new_sha is not None]

    @property
    def known(self) -> set[str]:
        """Commits from which on everything was looked at before."""
        before = {each.old_sha for each in self.updated_refs if each.old_sha is not None}
        if self.head_sha is not None and self.head_sha not in self.starts:
            before.add(self.head_sha)
        return before


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakFinding:
    """A text that has the form of a credential; the text itself is shown nowhere."""

    value: str = field(repr=False)
    path: str
    commit: str


# Everything here blocks on the disk; call it from a thread.

# Of one push, and bytes of one file: a credential is in a small text, if it is anywhere.
MOST_COMMITS = 100
MOST_FILES = 1000
MOST_BYTES = 1 << 20

# Prefix, kind, secret and checksum; the checksum says whether a hub made it.
_BODY = r"(?:oauth_|jwt_)?[0-9A-Za-z]{49}"


def credentials_in(text: bytes, *, prefix: str) -> set[str]:
    """Return what has the form and the checksum of a credential of this hub."""
    pattern = rf"(?<![0-9A-Za-z_]){re.escape(prefix)}{_BODY}(?![0-9A-Za-z])".encode()
    found = (match[0].decode() for match in re.finditer(pattern, text))
    return {value for value in found if has_valid_checksum(value)}


def search_folder(folder: Path, wanted: LeakSearch, *, prefix: str) -> list[LeakFinding]:
    """Look through the text files that new commits added or changed, each credential once."""
    if not folder.exists():
        return []
    repository = bare_repos.open_repository(folder)
    found: dict[str, LeakFinding] = {}
    for commit, path, text in islice(_changed_texts(repository, wanted), MOST_FILES):
        for value in credentials_in(text, prefix=prefix):
            found.setdefault(value, LeakFinding(value=value, path=path, commit=commit))
    return list(found.values())


def _changed_texts(
    repository: pygit2.Repository, wanted: LeakSearch
) -> Iterator[tuple[str, str, bytes]]:
    seen: set[pygit2.Oid] = set()
    for commit in _new_commits(repository, wanted):
        for delta in _diff(commit).deltas:
            if delta.new_file.id in seen:
                continue
            seen.add(delta.new_file.id)
            blob = repository.get(delta.new_file.id)
            if isinstance(blob, pygit2.Blob) and blob.size <= MOST_BYTES and not blob.is_binary:
                yield str(commit.id), delta.new_file.path, blob.data


def _new_commits(repository: pygit2.Repository, wanted: LeakSearch) -> Iterator[pygit2.Commit]:
    starts = [sha for sha in wanted.starts if _is_commit(repository, sha)]
    if not starts:
        return
    walk = repository.walk(pygit2.Oid(hex=starts[0]), SortMode.TOPOLOGICAL)
    for sha in starts[1:]:
        walk.push(pygit2.Oid(hex=sha))
    for sha in wanted.known:
        if _is_commit(repository, sha):
            walk.hide(pygit2.Oid(hex=sha))
    yield from islice(walk, MOST_COMMITS)


def _is_commit(repository: pygit2.Repository, sha: str) -> bool:
    """Tell whether there is such a commit; a tag of its own kind is none."""
    return isinstance(repository.get(sha), pygit2.Commit)


def _diff(commit: pygit2.Commit) -> pygit2.Diff:
    """Return what a commit changed since its first parent, or all that the first one has."""
    if not commit.parents:
        return commit.tree.diff_to_tree(swap=True)
    return commit.parents[0].tree.diff_to_tree(commit.tree)


async def search_repo(database: Database, wanted: LeakSearch) -> None:
    """Look through new commits of a public repository, and tell of each credential that works."""
    async with database.read() as conn:
        repo = await repo_rows.find(conn, wanted.repo_id)
    if repo is None or repo.is_private:
        return
    settings = database.hub.settings
    folder = bare_repos.folder_of(settings.database.data_dir, repo.id)
    found = await asyncio.to_thread(search_folder, folder, wanted, prefix=settings.tokens.prefix)
    if found:
        async with database.transaction() as conn:
            for finding in found:
                await _publish(conn, repo, finding)


async def _publish(conn: Connection, repo: Repo, finding: LeakFinding) -> None:
    caller = await tokens.find_caller(conn, finding.value)
    if caller is None:
        return
    await publish(
        conn,
        SecretDetected(
            user_id=caller.user_id,
            token_id=caller.token.id,
            name=caller.token.name,
            hint=caller.token.hint,
            repo=repos.snapshot(repo),
            path=finding.path,
            commit=finding.commit,
        ),
    )
