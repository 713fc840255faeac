"""Clears away the folders that a hub left which died while it created or deleted a repository."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.repos import store
from hublet.repos.git import folders

REMOVE_ORPHANS = "repos.remove-orphans"

# A repository that is just being created has its folder before its row.
_AGE = timedelta(hours=1)
_BATCH = 1000


async def plan(conn: Connection) -> None:
    """Have orphans looked for; a search that waits already is enough."""
    await add_task(conn, NewTask(kind=REMOVE_ORPHANS, body="{}", key=REMOVE_ORPHANS))


async def remove_orphans(database: Database) -> None:
    """Remove every folder of a repository that has no row and is more than an hour old."""
    # Files know the real time, which test mode does not move.
    before = clock.now() - clock.offset() - _AGE
    data_dir = database.hub.settings.database.data_dir
    old = await asyncio.to_thread(_older_than, data_dir, before)
    for start in range(0, len(old), _BATCH):
        batch = {folder.stem: folder for folder in old[start : start + _BATCH]}
        async with database.read() as conn:
            known = await store.existing_of(conn, batch)
        for repo_id in batch.keys() - known:
            await asyncio.to_thread(folders.remove, batch[repo_id])


def _older_than(data_dir: Path, moment: datetime) -> list[Path]:
    return [folder for folder in (data_dir / "repos").glob("??/*.git") if _is_older(folder, moment)]


def _is_older(folder: Path, moment: datetime) -> bool:
    try:
        return datetime.fromtimestamp(folder.stat().st_mtime, UTC) < moment
    except FileNotFoundError:
        # It was deleted a moment ago, so there is nothing to do.
        return False
