"""Bare repositories for tests of git's objects, without a hub around them."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pygit2

from hublet.repos.git import bare_repos


def git_sha1(data: bytes) -> str:
    """What git calls a file with this content."""
    return hashlib.sha1(b"blob %d\x00" % len(data) + data, usedforsecurity=False).hexdigest()


def commit_files(
    folder: Path,
    files: Mapping[str, bytes],
    *,
    parents: tuple[str, ...] = (),
    at: int = 0,
    message: str = "A commit.",
) -> str:
    """Make a commit that holds exactly these files; return its id."""
    repository = bare_repos.open_repository(folder)
    index = pygit2.Index()
    for path, data in files.items():
        blob = repository.create_blob(data)
        index.add(pygit2.IndexEntry(path, blob, pygit2.enums.FileMode.BLOB))
    who = pygit2.Signature("ada", "ada@example.com", at, 0)
    tree = index.write_tree(repository)
    commit = repository.create_commit(None, who, who, message, tree, list(parents))
    return str(commit)
