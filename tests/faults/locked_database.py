"""A database that answers whoever reads and keeps whoever writes waiting."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from processes import Place

# The server waits this long for its turn: longer than a test takes until it kills it.
PATIENT = {"HUBLET_DATABASE_BUSY_TIMEOUT_SECONDS": "60"}


@contextmanager
def locked_database(place: Place) -> Iterator[None]:
    """Let nothing of a repository be committed until the block ends."""
    hold = _sqlite_locked if place.database_url is None else _postgresql_locked
    with hold(place):
        yield


@contextmanager
def _sqlite_locked(place: Place) -> Iterator[None]:
    raw = sqlite3.connect(place.data_dir / "hub.db", timeout=10, isolation_level=None)
    try:
        raw.execute("BEGIN IMMEDIATE")
        yield
        raw.execute("ROLLBACK")
    finally:
        raw.close()


@contextmanager
def _postgresql_locked(place: Place) -> Iterator[None]:
    begun, over = threading.Event(), threading.Event()

    async def hold() -> None:
        import asyncpg  # noqa: PLC0415 - only tests on PostgreSQL need it

        raw = await asyncpg.connect(place.database_url)
        async with raw.transaction():
            await raw.execute("LOCK TABLE repos, repo_refs IN EXCLUSIVE MODE")
            begun.set()
            await asyncio.to_thread(over.wait)
        await raw.close()

    thread = threading.Thread(target=asyncio.run, args=(hold(),))
    thread.start()
    try:
        assert begun.wait(10)
        yield
    finally:
        over.set()
        thread.join()
