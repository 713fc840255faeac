"""A database that answers whoever reads and keeps whoever writes waiting."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from patience import SOON_SECONDS
from processes import Place

# The server waits this long for its turn: longer than a test takes until it kills it.
PATIENT = {"HUBLET_DATABASE_BUSY_TIMEOUT_SECONDS": "600"}


@contextmanager
def locked_database(place: Place) -> Iterator[None]:
    """Let nothing of a repository be committed until the block ends."""
    url = place.database_url
    hold = _sqlite_locked(place) if url is None else locked_tables(url, "repos", "repo_refs")
    with hold:
        yield


@contextmanager
def _sqlite_locked(place: Place) -> Iterator[None]:
    raw = sqlite3.connect(place.data_dir / "hub.db", timeout=SOON_SECONDS, isolation_level=None)
    try:
        raw.execute("BEGIN IMMEDIATE")
        yield
        raw.execute("ROLLBACK")
    finally:
        raw.close()


@contextmanager
def locked_tables(database_url: str, *tables: str) -> Iterator[None]:
    """Let nothing be written to these tables of PostgreSQL until the block ends."""
    begun, over = threading.Event(), threading.Event()

    async def hold() -> None:
        import asyncpg  # noqa: PLC0415 - only tests on PostgreSQL need it

        raw = await asyncpg.connect(database_url)
        async with raw.transaction():
            await raw.execute(f"LOCK TABLE {', '.join(tables)} IN EXCLUSIVE MODE")
            begun.set()
            await asyncio.to_thread(over.wait)
        await raw.close()

    thread = threading.Thread(target=asyncio.run, args=(hold(),))
    thread.start()
    try:
        assert begun.wait(SOON_SECONDS)
        yield
    finally:
        over.set()
        thread.join()
