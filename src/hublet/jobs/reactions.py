"""What happens after a job was deleted, in the worker."""

import asyncio
from typing import Any

from hublet.core.database import Database
from hublet.core.queue import handles_slowly
from hublet.jobs import folders
from hublet.jobs.service import REMOVE_FOLDER


@handles_slowly(REMOVE_FOLDER)
async def remove_folder_of_job(database: Database, body: dict[str, Any]) -> None:
    folder = folders.folder_of(database.hub.settings.database.data_dir, body["job_id"])
    await asyncio.to_thread(folders.remove, folder)
