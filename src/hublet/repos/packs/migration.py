"""Migration of a repository's objects from the folder of a node to the shared store, and back.

Pushes go on meanwhile. The transaction that ends a migration looks whether refs moved since the objects
were read, and what was written for the old place after that is refused: it has to be sent again.
"""

import asyncio
import os
from pathlib import Path

from hublet.core.database import Database
from hublet.repos.errors import StorageUnavailable
from hublet.repos.git import process
from hublet.repos.git.packs import sync_folder
from hublet.repos.packs import cache, compaction, store
from hublet.repos.packs.compaction import object_names
from hublet.repos.packs.store import PackKind
from hublet.storage.object_store import LocalStore, has_shared_store, open_store_at

# How often what came meanwhile is packed as well.
ATTEMPTS = 10
_BATCH = 500


async def move_all(database: Database) -> int:
    """Move the objects of all repositories to where they belong, and return how many were moved.

    That is the shared store; where the data folder itself is the store, it is the folder, so that
    `storage.url` can be left out afterwards.
    """
    settings = database.hub.settings
    if not has_shared_store(settings):
        return 0
    objects = open_store_at(settings.storage.url, settings.database.data_dir)
    is_own = (
        isinstance(objects, LocalStore)
        and objects.folder.absolute() == settings.database.data_dir.absolute()
    )
    moved, after = 0, ""
    while True:
        async with database.read() as conn:
            ids = await store.list_repo_ids(conn, is_listed=is_own, after=after, limit=_BATCH)
        if not ids:
            return moved
        for repo_id in ids:
            # A task of its own: what it holds of the cache is let go when it ends.
            step = (withdraw if is_own else publish)(database, repo_id)
            moved += await asyncio.create_task(step)
        after = ids[-1]


async def publish(database: Database, repo_id: str) -> bool:
    """Move the objects of a repository from this node's folder to the shared store.

    Return whether it was done: not when they are there already, nor without a folder.
    """
    if not await _is_unlisted(database, repo_id):
        return False
    folder = cache.path_of(database, repo_id)
    await cache.hold(folder)
    if not await asyncio.to_thread(folder.exists):
        return False
    async with compaction.open_output(folder) as output:
        packed: set[str] = set()
        for _ in range(ATTEMPTS):
            async with database.read() as conn:
                version, refs = await store.list_refs(conn, repo_id)
            lines = [*set(refs.values()), *(f"^{sha}" for sha in packed)]
            await compaction.write_pack(output.folders[PackKind.packed], lines, "--revs")
            if not packed:
                await _pack_unreachable(folder, output)
            packed |= set(refs.values())
            await output.upload(database, repo_id)
            async with database.transaction() as conn:
                is_done = await store.begin_list(conn, repo_id, output.packs, refs_version=version)
            if is_done:
                await output.adopt(database, repo_id)
                await asyncio.to_thread(cache.allow_eviction, folder)
                return True
            if not await _is_unlisted(database, repo_id):
                return False
    raise StorageUnavailable


async def withdraw(database: Database, repo_id: str) -> bool:
    """Move the objects of a repository to this node's folder, where they stay; return whether it was done.

    What is left of it in the store is swept as anything that no row names.
    """
    for _ in range(ATTEMPTS):
        async with database.read() as conn:
            version = await store.version_of(conn, repo_id)
        if version is None or version <= 0:
            return False
        folder = await cache.open_folder(database, repo_id)
        await asyncio.to_thread(cache.forbid_eviction, folder)
        await asyncio.to_thread(_sync, folder)
        async with database.transaction() as conn:
            if await store.end_list(conn, repo_id, version=version):
                return True
    raise StorageUnavailable


async def _is_unlisted(database: Database, repo_id: str) -> bool:
    async with database.read() as conn:
        version = await store.version_of(conn, repo_id)
    return version is not None and version <= 0


async def _pack_unreachable(folder: Path, output: compaction.PackOutput) -> None:
    """Pack what no ref reaches: it may be needed in a moment, or once more."""
    command = ("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
    async with process.start_git(folder, *command, stdin=asyncio.subprocess.DEVNULL) as git:
        present = set((await git.stdout.read()).decode().split())
        await git.end()
    for index in output.written():
        present -= {name.hex() for name in await asyncio.to_thread(object_names, index)}
    if present:
        await compaction.write_pack(output.folders[PackKind.cruft], sorted(present))


def _sync(folder: Path) -> None:
    """Make all that a cache need not keep survive a power cut."""
    packs = folder / "objects" / "pack"
    for path in (*packs.iterdir(), folder / "HEAD", folder / "config"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    for changed in (packs, folder / "objects", folder / "refs", folder, folder.parent):
        sync_folder(changed)
