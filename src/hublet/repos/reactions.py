"""What happens after a repository changed, in the worker."""

import asyncio
from typing import Any

from hublet.core.database import Database
from hublet.core.queue import handles_slowly
from hublet.repos import sweeping
from hublet.repos.git import folders
from hublet.repos.service import REMOVE_FOLDER
from hublet.repos.sweeping import REMOVE_ORPHANS


@handles_slowly(REMOVE_FOLDER)
async def remove_folder(database: Database, body: dict[str, Any]) -> None:
    folder = folders.folder_of(database.hub.settings.database.data_dir, body["repo_id"])
    await asyncio.to_thread(folders.remove, folder)


@handles_slowly(REMOVE_ORPHANS)
async def remove_orphans(database: Database, _body: dict[str, Any]) -> None:
    await sweeping.remove_orphans(database)
