"""Maintenance of bare repositories: packed-refs for git itself, and repacking."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path

from hublet.core.clock import now, offset
from hublet.core.database import Connection, Database
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.repos import service as repos
from hublet.repos.errors import RepoFolderGone
from hublet.repos.git import bare_repos, quarantine
from hublet.repos.packs import compaction
from hublet.repos.packs.cache import hold, is_listed, path_of
from hublet.repos.refs import store as ref_store
from hublet.storage.object_store import has_shared_store

REPACK = "repos.pack"

# A busy repository is checked this often, an idle one not at all.
REPACK_EVERY = timedelta(hours=1)
# With a shared store, each push is a pack that every node fetches.
REPACK_LISTED_EVERY = timedelta(minutes=1)


async def sync_packed_refs(database: Database, repo_id: str) -> Path:
    """Bring packed-refs, git's own list of refs, up to date; return the folder of the repository.

    Call it right before git itself runs, and with no transaction open.
    """
    if has_shared_store(database.hub.settings):
        # What is read of it below must be there afterwards, too.
        await hold(path_of(database, repo_id))
    async with database.read() as conn:
        # The version is read first: refs that change in between are then merely newer than it.
        version = await ref_store.version_of(conn, repo_id)
    if (
        await asyncio.to_thread(bare_repos.packed_refs_version, path_of(database, repo_id))
        == version
    ):
        # Whoever wrote the list had all that its refs point to; the packs may be gone by now.
        return await repos.open_folder(database, repo_id)
    async with database.read() as conn:
        current = {ref.name: ref.sha for ref in await ref_store.list_of(conn, repo_id)}
    # After the refs, so that it has all that they point to.
    folder = await repos.open_folder(database, repo_id)
    try:
        await asyncio.to_thread(bare_repos.write_packed_refs, folder, current, version=version)
    except FileNotFoundError:
        raise RepoFolderGone from None
    return folder


async def schedule_repack(conn: Connection, repo_id: str) -> None:
    """Check after a while whether a repository needs packing; one such task waits at a time."""
    body = json.dumps({"repo_id": repo_id})
    is_shared = has_shared_store(conn.hub.settings)
    delay = REPACK_LISTED_EVERY if is_shared else REPACK_EVERY
    task = NewTask(kind=REPACK, body=body, key=f"{REPACK}.{repo_id}", delay=delay)
    await add_task(conn, task)


async def repack_if_needed(database: Database, repo_id: str) -> bool:
    """Repack a repository with many loose objects or packs; return whether it was done."""
    if await is_listed(database, repo_id):
        return await compaction.repack_if_needed(database, repo_id)
    folder = await repos.open_folder(database, repo_id)
    # Files know the real time, which test mode does not move.
    await asyncio.to_thread(quarantine.clear_abandoned, folder, now=now() - offset())
    if not await asyncio.to_thread(bare_repos.needs_repack, folder):
        return False
    async with database.read() as conn:
        if not await ref_store.list_of(conn, repo_id):
            # It is being deleted. Git would take everything for unreachable.
            return False
    await bare_repos.repack(await sync_packed_refs(database, repo_id))
    return True
