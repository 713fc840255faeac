"""Clears away commits that were written out for jobs and that no job has mounted for a week."""

import asyncio
from datetime import timedelta

import msgspec

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.jobs.records import Spec
from hublet.jobs.volumes import checkouts, store

SWEEP = "jobs.sweep-volumes"

AGE = timedelta(days=7)
EVERY = timedelta(days=1)


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
    unused = await asyncio.to_thread(checkouts.list_unused, data_dir, since=since)
    async with database.read() as conn:
        used = _commits(await store.specs_in_use(conn))
    for folder in unused:
        # An attempt may last longer than a week; what it mounts stays.
        if folder.name not in used:
            await asyncio.to_thread(checkouts.remove, folder)


def _commits(specs: list[str]) -> set[str]:
    decoded = (msgspec.json.decode(spec, type=Spec) for spec in specs)
    return {mount.commit for spec in decoded for mount in spec.mounts if mount.commit}
