"""Pruning of checkouts that no job has mounted for a week."""

import asyncio
from datetime import timedelta

import msgspec

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.jobs import store
from hublet.jobs.records import Spec
from hublet.runtime.volumes import checkouts

PRUNE_TASK = "jobs.sweep-volumes"

MAX_AGE = timedelta(days=7)
INTERVAL = timedelta(days=1)


async def add_task_of_day(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    """Have the folder swept, once on any day however often it is asked for."""
    day = (clock.now() + delay).date().isoformat()
    await add_task(
        conn, NewTask(kind=PRUNE_TASK, body="{}", key=f"{PRUNE_TASK}.{day}", delay=delay)
    )


async def prune(database: Database) -> None:
    async with database.transaction() as conn:
        await add_task_of_day(conn, delay=INTERVAL)
    data_dir = database.hub.settings.database.data_dir
    # Files know the real time, which test mode does not move.
    since = (clock.now() - clock.offset() - MAX_AGE).timestamp()
    unused = await asyncio.to_thread(checkouts.list_unused, data_dir, since=since)
    async with database.read() as conn:
        used = _mounted_commits(await store.list_specs_in_use(conn))
    for folder in unused:
        # An attempt may last longer than a week; what it mounts stays.
        if folder.name not in used:
            await asyncio.to_thread(checkouts.remove_checkout, folder)


def _mounted_commits(specs: list[str]) -> set[str]:
    decoded = (msgspec.json.decode(spec, type=Spec) for spec in specs)
    return {mount.commit for spec in decoded for mount in spec.mounts if mount.commit}
