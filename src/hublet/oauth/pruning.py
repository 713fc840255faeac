"""Daily pruning: accesses that expired long ago with their tokens, tokens of trusted publishers and what
they were exchanged for, and apps that registered themselves and that nobody uses.
"""

from datetime import timedelta

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.core.queue import add_daily
from hublet.oauth.access import store as access_store
from hublet.oauth.apps import service as apps
from hublet.oauth.client_metadata import store as client_metadata_store
from hublet.oauth.publishers import store as publisher_store
from hublet.tokens import store as token_store

SWEEP_ACCESSES = "oauth.sweep-accesses"
PRUNE_APPS = "oauth.prune-apps"

EVERY = timedelta(days=1)
# For this long an expired token can be distinguished from an unknown one.
KEPT_AFTER_EXPIRY = timedelta(days=7)
REMOVED_AFTER_UNUSED = timedelta(days=30)
BATCH = 200


async def schedule(conn: Connection) -> None:
    """Add today's tasks unless they are there."""
    await add_daily(conn, SWEEP_ACCESSES)
    await add_daily(conn, PRUNE_APPS)


async def sweep_accesses(database: Database) -> None:
    async with database.transaction() as conn:
        await add_daily(conn, SWEEP_ACCESSES, delay=EVERY)
        await publisher_store.remove_expired_id_tokens(conn)
    before = clock.to_micros(clock.now() - KEPT_AFTER_EXPIRY)
    async with database.transaction() as conn:
        await token_store.remove_expired_of_publishers(conn, before=before)
    while True:
        # Each batch has a transaction of its own, so that no request waits for all of them.
        async with database.transaction() as conn:
            removed = await access_store.remove_expired(conn, before=before, limit=BATCH)
        if removed < BATCH:
            return


async def prune_apps(database: Database) -> None:
    async with database.transaction() as conn:
        await add_daily(conn, PRUNE_APPS, delay=EVERY)
    before = clock.to_micros(clock.now() - REMOVED_AFTER_UNUSED)
    while True:
        # As above.
        async with database.transaction() as conn:
            unused = await client_metadata_store.list_unused(conn, before=before, limit=BATCH)
            await apps.remove(conn, unused)
        if len(unused) < BATCH:
            return
