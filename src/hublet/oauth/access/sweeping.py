"""Forgets accesses that expired long ago, with every token that was issued from them."""

from datetime import timedelta

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.oauth.access import store

SWEEP = "oauth.sweep-accesses"

EVERY = timedelta(days=1)
# So long can still be told from an unknown token what had once worked.
KEPT = timedelta(days=7)
BATCH = 200


async def plan(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    """Have it done, once on any day however often it is asked for."""
    day = (clock.now() + delay).date().isoformat()
    await add_task(conn, NewTask(kind=SWEEP, body="{}", key=f"{SWEEP}.{day}", delay=delay))


async def sweep(database: Database) -> None:
    async with database.transaction() as conn:
        await plan(conn, delay=EVERY)
    before = clock.to_micros(clock.now() - KEPT)
    while True:
        # Each batch has a transaction of its own, so that nobody waits for all of them.
        async with database.transaction() as conn:
            removed = await store.remove_expired(conn, before=before, limit=BATCH)
        if removed < BATCH:
            return
