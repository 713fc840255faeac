"""Tasks of jobs in the worker: remove the folder of a deleted job, start a scheduled job."""

import asyncio
from typing import Any

from hublet.core.database import Database
from hublet.core.folders import remove_tree
from hublet.core.ids import is_object_id
from hublet.core.queue import handles_slowly
from hublet.jobs import store
from hublet.jobs.logs.reader import job_folder
from hublet.jobs.schedules.service import START_TASK
from hublet.jobs.schedules.starter import start_due
from hublet.jobs.service import REMOVE_FOLDER

# As `job_folder` names them.
_FOLDERS = "[0-9a-f][0-9a-f]/*"
_BATCH = 500


@handles_slowly(REMOVE_FOLDER)
async def remove_folder_of_job(database: Database, body: dict[str, Any]) -> None:
    folder = job_folder(database.hub.settings.database.data_dir, body["job_id"])
    await asyncio.to_thread(remove_tree, folder)


async def remove_orphans(database: Database) -> None:
    """Remove the folders on this machine of jobs that were deleted on another one."""
    jobs = database.hub.settings.database.data_dir / "jobs"
    folders = await asyncio.to_thread(lambda: {each.name: each for each in jobs.glob(_FOLDERS)})
    names = sorted(name for name in folders if is_object_id(name))
    for start in range(0, len(names), _BATCH):
        batch = names[start : start + _BATCH]
        async with database.read() as conn:
            known = await store.find_details(conn, batch)
        for name in set(batch) - known.keys():
            await asyncio.to_thread(remove_tree, folders[name])


@handles_slowly(START_TASK)
async def start_scheduled_job(database: Database, body: dict[str, Any]) -> None:
    await start_due(database, body["scheduled_job_id"], due_at=body["due_at"])
