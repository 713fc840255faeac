"""The first commit of a repository."""

from datetime import datetime
from pathlib import Path

import pygit2

from hublet.repos.git import folders
from hublet.repos.git.identities import signature


def create(folder: Path, *, author: str, at: datetime) -> str:
    """Make a bare repository with one commit that holds .gitattributes; return its id."""
    folders.create(folder)
    repository = folders.open_folder(folder)
    builder = repository.TreeBuilder()
    blob = repository.create_blob(folders.GIT_ATTRIBUTES.encode())
    builder.insert(".gitattributes", blob, pygit2.enums.FileMode.BLOB)
    who = signature(author, at=at)
    commit = repository.create_commit(None, who, who, "initial commit", builder.write(), [])
    return str(commit)
