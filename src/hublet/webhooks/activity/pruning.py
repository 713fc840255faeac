"""Pruning of deliveries that ended long ago, and of their events."""

from datetime import timedelta

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.webhooks.activity import store

PRUNE = "webhooks.prune"

INTERVAL = timedelta(days=1)
BATCH = 1000


async def schedule(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    """Have old deliveries forgotten, once on any day however often it is asked for."""
    day = (clock.now() + delay).date().isoformat()
    await add_task(conn, NewTask(kind=PRUNE, body="{}", key=f"{PRUNE}.{day}", delay=delay))


async def prune(database: Database) -> None:
    async with database.transaction() as conn:
        await schedule(conn, delay=INTERVAL)
    kept = timedelta(days=database.hub.settings.webhooks.retention_days)
    before = clock.to_micros(clock.now() - kept)
    await _remove_deliveries(database, before)
    await _remove_events(database, before)


async def _remove_deliveries(database: Database, before: int) -> None:
    """Each batch has a transaction of its own, so that nobody waits for all of them."""
    last = ""
    while True:
        async with database.transaction() as conn:
            forgotten = await store.remove_finished(conn, before=before, after=last, limit=BATCH)
        if len(forgotten) < BATCH:
            return
        last = max(forgotten)


async def _remove_events(database: Database, before: int) -> None:
    while True:
        async with database.transaction() as conn:
            if await store.remove_unused_events(conn, before=before, limit=BATCH) < BATCH:
                return
