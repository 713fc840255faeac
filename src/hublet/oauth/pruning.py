"""Daily pruning: accesses that expired long ago with their tokens, and apps that registered
themselves and that nobody uses.
"""

from datetime import timedelta

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.oauth.access import store
from hublet.oauth.apps import service as apps
from hublet.oauth.client_metadata import store as client_metadata_store

SWEEP_ACCESSES = "oauth.sweep-accesses"

EVERY = timedelta(days=1)
# So long can still be told from an unknown token what had once worked.
KEPT_AFTER_EXPIRY = timedelta(days=7)
BATCH = 200


async def schedule_access_sweep(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    """Have it done, once on any day however often it is asked for."""
    day = (clock.now() + delay).date().isoformat()
    await add_task(
        conn, NewTask(kind=SWEEP_ACCESSES, body="{}", key=f"{SWEEP_ACCESSES}.{day}", delay=delay)
    )


async def sweep_accesses(database: Database) -> None:
    async with database.transaction() as conn:
        await schedule_access_sweep(conn, delay=EVERY)
    before = clock.to_micros(clock.now() - KEPT_AFTER_EXPIRY)
    while True:
        # Each batch has a transaction of its own, so that nobody waits for all of them.
        async with database.transaction() as conn:
            removed = await store.remove_expired(conn, before=before, limit=BATCH)
        if removed < BATCH:
            return


PRUNE_APPS = "oauth.prune-apps"


REMOVED_AFTER_UNUSED = timedelta(days=30)


async def schedule_app_pruning(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    """Have unused apps removed, once on any day however often it is asked for."""
    day = (clock.now() + delay).date().isoformat()
    await add_task(
        conn, NewTask(kind=PRUNE_APPS, body="{}", key=f"{PRUNE_APPS}.{day}", delay=delay)
    )


async def prune_apps(database: Database) -> None:
    async with database.transaction() as conn:
        await schedule_app_pruning(conn, delay=EVERY)
    before = clock.to_micros(clock.now() - REMOVED_AFTER_UNUSED)
    while True:
        # Each batch has a transaction of its own, so that nobody waits for all of them.
        async with database.transaction() as conn:
            unused = await client_metadata_store.list_unused(conn, before=before, limit=BATCH)
            await apps.remove(conn, unused)
        if len(unused) < BATCH:
            return
