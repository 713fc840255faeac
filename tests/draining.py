"""Doing the worker's work inside a test."""

import asyncio

from hublet.core import clock, outbox
from hublet.core.database import Database
from hublet.worker import Worker


async def drain(database: Database) -> None:
    """Run a worker until no fact is left, no task is due and none is running."""
    worker = Worker(database)
    worker.start()
    try:
        async with asyncio.timeout(10):
            while await _waiting(database):
                await asyncio.sleep(0.01)
    finally:
        await worker.stop()


async def _waiting(database: Database) -> int:
    async with database.read() as conn:
        tasks: int = await conn.fetch_value(
            """
            SELECT count(*) FROM tasks
            WHERE parked_at IS NULL AND (claimed_by IS NOT NULL OR due_at <= $1)
            """,
            clock.micros(),
        )
        return tasks + await outbox.count_waiting(conn)
