"""The first commit of a repository."""

import os
from datetime import datetime
from pathlib import Path

from hublet.repos.git import folders
from hublet.repos.git.objects import FILE, Draft, Item, commit_data, tree_data
from hublet.repos.git.packs import sync_folder
from hublet.repos.git.writing import ObjectWriter


def create(folder: Path, *, author: str, at: datetime) -> str:
    """Make a bare repository with one commit that holds .gitattributes; return its id.

    Everything is safe on the disk when this returns.
    """
    folders.create(folder)
    _sync(folder)
    draft = Draft(author=author, at=at, message="initial commit")
    with ObjectWriter(folder) as writer:
        blob = writer.add("blob", folders.GIT_ATTRIBUTES.encode())
        items = {b".gitattributes": Item(FILE, bytes.fromhex(blob))}
        tree = writer.add("tree", tree_data(items))
        commit = writer.add("commit", commit_data(draft, tree=tree, parents=()))
        writer.finish()
    return commit


def _sync(folder: Path) -> None:
    # Without these two files git does not take the folder for a repository.
    for name in ("HEAD", "config"):
        with (folder / name).open("rb") as file:
            os.fsync(file.fileno())
    for changed in (folder / "objects", folder / "refs", folder, folder.parent):
        sync_folder(changed)
