"""Backfill of the index of parts: names of before there was one, those of users, then of repositories.

It begins an hour after an upgrade, when no process of the version before, which knows no index, is
left to create or rename something. Until it is done lists look for a name along their order.
"""

from datetime import timedelta

from hublet.accounts import name_parts_store
from hublet.accounts.name_parts_store import FILLED, FILLED_NAME
from hublet.core import metadata, queue
from hublet.core.database import Connection, Database
from hublet.core.queue import NewTask
from hublet.repos import name_index_store

FILL = "repos.fill-name-parts"

_BEGINS_AFTER = timedelta(hours=1)
# So many names are written at once, and done again if the process dies.
_BATCH = 50
# What comes before the id in the progress.
_USER, _REPO = "user ", "repo "


async def schedule(conn: Connection) -> None:
    """Schedule the task that fills in older names from where it is, unless it is done."""
    progress = await metadata.find(conn, FILLED_NAME)
    if progress is not None and progress != FILLED:
        delay = timedelta() if progress else _BEGINS_AFTER
        await queue.add(conn, NewTask(kind=FILL, body="{}", key=f"{FILL}.{progress}", delay=delay))


async def fill(database: Database) -> None:
    """Fill in a part of the names; another task goes on where this one ends."""
    await queue.run_batches(database, _fill_batch, schedule=schedule)


async def _fill_batch(database: Database) -> bool:
    """Return False at the end.

    Nothing is locked: who changes a name meanwhile writes the new one, and the old one does no harm.
    """
    async with database.transaction() as conn:
        progress = await metadata.find(conn, FILLED_NAME)
        if progress is None or progress == FILLED:
            return False
        if progress.startswith(_REPO):
            after = progress.removeprefix(_REPO)
            last = await name_index_store.add_existing(conn, after=after, limit=_BATCH)
            reached = FILLED if last is None else f"{_REPO}{last}"
        else:
            after = progress.removeprefix(_USER)
            last = await name_parts_store.add_users(conn, after=after, limit=_BATCH)
            reached = _REPO if last is None else f"{_USER}{last}"
        await metadata.set_value(conn, FILLED_NAME, reached)
    return True
