"""Looks for credentials in what commits changed: git alone.

Everything here blocks on the disk; call it from a thread.
"""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pygit2
from pygit2.enums import SortMode

from hublet.notifications.messages.leaks.records import Finding, Search
from hublet.repos.git import folders
from hublet.tokens.format import has_valid_checksum

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


def search(folder: Path, wanted: Search, *, prefix: str) -> list[Finding]:
    """Look through the text files that new commits added or changed, each credential once."""
    if not folder.exists():
        return []
    repository = folders.open_folder(folder)
    found: dict[str, Finding] = {}
    for commit, path, text in islice(_changed_texts(repository, wanted), MOST_FILES):
        for value in credentials_in(text, prefix=prefix):
            found.setdefault(value, Finding(value=value, path=path, commit=commit))
    return list(found.values())


def _changed_texts(
    repository: pygit2.Repository, wanted: Search
) -> Iterator[tuple[str, str, bytes]]:
    seen: set[pygit2.Oid] = set()
    for commit in _new_commits(repository, wanted):
        for delta in _changes(commit).deltas:
            if delta.new_file.id in seen:
                continue
            seen.add(delta.new_file.id)
            blob = repository.get(delta.new_file.id)
            if isinstance(blob, pygit2.Blob) and blob.size <= MOST_BYTES and not blob.is_binary:
                yield str(commit.id), delta.new_file.path, blob.data


def _new_commits(repository: pygit2.Repository, wanted: Search) -> Iterator[pygit2.Commit]:
    starts = [sha for sha in wanted.starts if _commit(repository, sha)]
    if not starts:
        return
    walk = repository.walk(pygit2.Oid(hex=starts[0]), SortMode.TOPOLOGICAL)
    for sha in starts[1:]:
        walk.push(pygit2.Oid(hex=sha))
    for sha in wanted.known:
        if _commit(repository, sha):
            walk.hide(pygit2.Oid(hex=sha))
    yield from islice(walk, MOST_COMMITS)


def _commit(repository: pygit2.Repository, sha: str) -> bool:
    """Tell whether there is such a commit; a tag of its own kind is none."""
    return isinstance(repository.get(sha), pygit2.Commit)


def _changes(commit: pygit2.Commit) -> pygit2.Diff:
    """Return what a commit changed since its first parent, or all that the first one has."""
    if not commit.parents:
        return commit.tree.diff_to_tree(swap=True)
    return commit.parents[0].tree.diff_to_tree(commit.tree)
