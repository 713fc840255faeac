"""Clears away what nobody needs any more: unused blobs, and what interrupted uploads left.

Everything is left alone for a day. An upload puts its bytes into the folder first and notes
them in the database after that, so what lies there without a row may just have arrived.
"""

import asyncio
from datetime import timedelta
from pathlib import Path

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.repos.blobs import leftovers, store

SWEEP = "blobs.sweep"

AGE = timedelta(days=1)
EVERY = timedelta(days=1)
_BATCH = 500


async def plan(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    """Have the folder swept, once on any day however often it is asked for."""
    day = (clock.now() + delay).date().isoformat()
    await add_task(conn, NewTask(kind=SWEEP, body="{}", key=f"{SWEEP}.{day}", delay=delay))


async def sweep(database: Database) -> None:
    async with database.transaction() as conn:
        await plan(conn, delay=EVERY)
    data_dir = database.hub.settings.database.data_dir
    # Files know the real time, which test mode does not move.
    since = (clock.now() - clock.offset() - AGE).timestamp()
    await _forget_unused(database, data_dir, since)
    await _remove_unknown(database, data_dir, since)
    await asyncio.to_thread(leftovers.remove_interrupted, data_dir, since=since)


async def _forget_unused(database: Database, data_dir: Path, since: float) -> None:
    before = clock.to_micros(clock.now() - AGE)
    while True:
        async with database.transaction() as conn:
            digests = await store.remove_unused(conn, before=before, limit=_BATCH)
        # Only now is it sure that nobody finds them by the database.
        await asyncio.to_thread(leftovers.remove, data_dir, digests, since=since)
        if len(digests) < _BATCH:
            return


async def _remove_unknown(database: Database, data_dir: Path, since: float) -> None:
    """Remove files that the database does not know: their hub died before it noted them."""
    for folder in await asyncio.to_thread(leftovers.list_folders, data_dir):
        digests = await asyncio.to_thread(leftovers.list_old, folder, since=since)
        for start in range(0, len(digests), _BATCH):
            batch = digests[start : start + _BATCH]
            async with database.read() as conn:
                known = await store.find_known(conn, batch)
            unknown = [digest for digest in batch if digest not in known]
            await asyncio.to_thread(leftovers.remove, data_dir, unknown, since=since)
