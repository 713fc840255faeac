"""What happens after a repository changed, in the worker."""

import asyncio
from typing import Any

from hublet.core.database import Database
from hublet.core.queue import handles_slowly
from hublet.repos.git import folders
from hublet.repos.service import REMOVE_FOLDER


@handles_slowly(REMOVE_FOLDER)
async def remove_folder(database: Database, body: dict[str, Any]) -> None:
    folder = folders.folder_of(database.hub.settings.database.data_dir, body["repo_id"])
    await asyncio.to_thread(folders.remove, folder)
