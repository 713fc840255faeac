"""Search for leaked credentials in new commits of public repositories.

`search_folder` reads from the disk and blocks: call it from a thread.
"""

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

# Of one push, and bytes of one file: credentials are in small text files.
MOST_COMMITS = 100
MOST_FILES = 1000
MOST_BYTES = 1 << 20
# Kind, secret and checksum; the checksum says whether a hub made it.
_BODY = r"(?:oauth_|jwt_)?[0-9A-Za-z]{49}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakSearch:
    """A search of what was pushed to a repository, as a task stores it."""

    repo_id: str
    updated_refs: tuple[UpdatedRef, ...]
    # The head of main; what is there already is not new on another branch.
    head_sha: str | None

    @property
    def starts(self) -> list[str]:
        return [each.new_sha for each in self.updated_refs if each.new_sha is not None]

    @property
    def known(self) -> set[str]:
        """Commits that were searched before, with all before them."""
        before = {each.old_sha for each in self.updated_refs if each.old_sha is not None}
        if self.head_sha is not None and self.head_sha not in self.starts:
            before.add(self.head_sha)
        return before


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakFinding:
    """A text that has the form of a credential; the text itself is never shown."""

    value: str = field(repr=False)
    path: str
    commit: str


async def search_repo(database: Database, search: LeakSearch) -> None:
    """Search new commits of a public repository; publish an event for each valid credential."""
    async with database.read() as conn:
        repo = await repo_rows.find(conn, search.repo_id)
    if repo is None or repo.is_private:
        return
    prefix = database.hub.settings.tokens.prefix
    found = await asyncio.to_thread(
        search_folder, await repos.open_folder(database, repo.id), search, prefix=prefix
    )
    if found:
        async with database.transaction() as conn:
            for finding in found:
                await _publish(conn, repo, finding)


def search_folder(folder: Path, search: LeakSearch, *, prefix: str) -> list[LeakFinding]:
    """Search the text files that new commits added or changed; return each credential once."""
    if not folder.exists():
        return []
    repository = bare_repos.open_repository(folder)
    found: dict[str, LeakFinding] = {}
    for commit, path, text in islice(_changed_texts(repository, search), MOST_FILES):
        for value in credentials_in(text, prefix=prefix):
            found.setdefault(value, LeakFinding(value=value, path=path, commit=commit))
    return list(found.values())


def credentials_in(text: bytes, *, prefix: str) -> set[str]:
    """Return what has the form and the checksum of a credential of this hub."""
    pattern = rf"(?<![0-9A-Za-z_]){re.escape(prefix)}{_BODY}(?![0-9A-Za-z])".encode()
    found = (match[0].decode() for match in re.finditer(pattern, text))
    return {value for value in found if has_valid_checksum(value)}


def _changed_texts(
    repository: pygit2.Repository, search: LeakSearch
) -> Iterator[tuple[str, str, bytes]]:
    seen: set[pygit2.Oid] = set()
    for commit in _new_commits(repository, search):
        for delta in _diff(commit).deltas:
            if delta.new_file.id in seen:
                continue
            seen.add(delta.new_file.id)
            blob = repository.get(delta.new_file.id)
            if isinstance(blob, pygit2.Blob) and blob.size <= MOST_BYTES and not blob.is_binary:
                yield str(commit.id), delta.new_file.path, blob.data


def _new_commits(repository: pygit2.Repository, search: LeakSearch) -> Iterator[pygit2.Commit]:
    starts = [sha for sha in search.starts if _is_commit(repository, sha)]
    if not starts:
        return
    walk = repository.walk(pygit2.Oid(hex=starts[0]), SortMode.TOPOLOGICAL)
    for sha in starts[1:]:
        walk.push(pygit2.Oid(hex=sha))
    for sha in search.known:
        if _is_commit(repository, sha):
            walk.hide(pygit2.Oid(hex=sha))
    yield from islice(walk, MOST_COMMITS)


def _is_commit(repository: pygit2.Repository, sha: str) -> bool:
    """Tell whether there is such a commit; an annotated tag is none."""
    return isinstance(repository.get(sha), pygit2.Commit)


def _diff(commit: pygit2.Commit) -> pygit2.Diff:
    """Return the changes since the first parent, or everything in a first commit."""
    if not commit.parents:
        return commit.tree.diff_to_tree(swap=True)
    return commit.parents[0].tree.diff_to_tree(commit.tree)


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
