"""Tasks of jobs in the worker: remove the folder of a deleted job, start a scheduled job."""

import asyncio
from typing import Any

from hublet.core.database import Database
from hublet.core.folders import remove_tree
from hublet.core.queue import handles_slowly
from hublet.jobs.logs.reader import job_folder
from hublet.jobs.schedules.service import START_TASK
from hublet.jobs.schedules.starter import start_due
from hublet.jobs.service import REMOVE_FOLDER
from hublet.storage.holds import after_backups


@handles_slowly(REMOVE_FOLDER)
@after_backups(REMOVE_FOLDER)
async def remove_folder_of_job(database: Database, body: dict[str, Any]) -> None:
    folder = job_folder(database.hub.settings.database.data_dir, body["job_id"])
    await asyncio.to_thread(remove_tree, folder)


@handles_slowly(START_TASK)
async def start_scheduled_job(database: Database, body: dict[str, Any]) -> None:
    await start_due(database, body["scheduled_job_id"], due_at=body["due_at"])
