"""Rules of downloads: which file is meant, and where its bytes lie."""

import asyncio
from dataclasses import replace

from hublet.core.database import Database
from hublet.repos.blobs import folder as blob_folder
from hublet.repos.blobs import store as blobs
from hublet.repos.downloads.errors import ContentMissing
from hublet.repos.downloads.records import StoredFile
from hublet.repos.errors import EntryNotFound
from hublet.repos.git import folders, trees
from hublet.repos.git.trees import Lfs
from hublet.repos.trees.records import Revision


async def get_file(database: Database, at: Revision, path: str) -> StoredFile:
    """Return the file with its content, wherever that lies."""
    file = await get_raw_file(at, path)
    if file.entry.lfs is None:
        return file
    return await _with_content(database, file, file.entry.lfs)


async def get_raw_file(at: Revision, path: str) -> StoredFile:
    """Return the file as git holds it: of a large one, the pointer."""
    return await asyncio.to_thread(_get_file, at, path)


def _get_file(at: Revision, path: str) -> StoredFile:
    # A tag may have an id of its own; clients want that of the commit it stands for.
    commit = str(trees.get_commit(folders.open_folder(at.folder), at.commit).id)
    entry = trees.get_entry(at.folder, commit, path)
    if entry.type != "file":
        raise EntryNotFound(path, commit=commit)
    return StoredFile(repo=at.repo, commit=commit, entry=entry, folder=at.folder)


async def _with_content(database: Database, file: StoredFile, lfs: Lfs) -> StoredFile:
    # A pointer can be written by anybody who knows a digest; that is no right to the content.
    async with database.read() as conn:
        found = await blobs.find_in_repo(conn, file.repo.id, [lfs.sha256])
    if lfs.sha256 not in found or found[lfs.sha256].size != lfs.size:
        raise ContentMissing(file.entry.path)
    path = blob_folder.path_of(database.hub.settings.database.data_dir, lfs.sha256)
    return replace(file, blob=path)


async def read_small(file: StoredFile) -> bytes:
    return await asyncio.to_thread(trees.read_blob, file.folder, file.entry.oid)
