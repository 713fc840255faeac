"""Removes apps that came by themselves and that nobody uses."""

from datetime import timedelta

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.oauth.apps import service as apps
from hublet.oauth.registration import store

PRUNE = "oauth.prune-apps"

EVERY = timedelta(days=1)
UNUSED = timedelta(days=30)
BATCH = 200


async def plan(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    """Have unused apps removed, once on any day however often it is asked for."""
    day = (clock.now() + delay).date().isoformat()
    await add_task(conn, NewTask(kind=PRUNE, body="{}", key=f"{PRUNE}.{day}", delay=delay))


async def prune(database: Database) -> None:
    async with database.transaction() as conn:
        await plan(conn, delay=EVERY)
    before = clock.to_micros(clock.now() - UNUSED)
    while True:
        # Each batch has a transaction of its own, so that nobody waits for all of them.
        async with database.transaction() as conn:
            unused = await store.list_unused(conn, before=before, limit=BATCH)
            await apps.remove(conn, unused)
        if len(unused) < BATCH:
            return
