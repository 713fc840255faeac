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
from hublet.repos.git import bare_repos, packed_refs, quarantine
from hublet.repos.refs import store as ref_store

REPACK = "repos.pack"

# A busy repository is checked this often, an idle one not at all.
REPACK_EVERY = timedelta(hours=1)


async def sync_packed_refs(database: Database, repo_id: str) -> Path:
    """Bring packed-refs, git's own list of refs, up to date; return the folder of the repository.

    Call it right before git itself runs, and with no transaction open.
    """
    folder = repos.git_folder(database, repo_id)
    async with database.read() as conn:
        # The version is read first: refs that change in between are then merely newer than it.
        version = await ref_store.version_of(conn, repo_id)
    if await asyncio.to_thread(packed_refs.version_of, folder) == version:
        return folder
    async with database.read() as conn:
        current = {ref.name: ref.sha for ref in await ref_store.list_of(conn, repo_id)}
    try:
        await asyncio.to_thread(packed_refs.write, folder, current, version=version)
    except FileNotFoundError:
        raise RepoFolderGone from None
    return folder


async def schedule_repack(conn: Connection, repo_id: str) -> None:
    """Check in an hour whether a repository needs packing; one such task waits at a time."""
    body = json.dumps({"repo_id": repo_id})
    task = NewTask(kind=REPACK, body=body, key=f"{REPACK}.{repo_id}", delay=REPACK_EVERY)
    await add_task(conn, task)


async def repack_if_needed(database: Database, repo_id: str) -> bool:
    """Repack a repository with many loose objects or packs; return whether it was done."""
    folder = repos.git_folder(database, repo_id)
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
