"""Doing the worker's work inside a test."""

import asyncio

from hublet.core import clock
from hublet.core.database import Database
from hublet.worker import Worker

_MOMENT = 50_000


async def drain(database: Database) -> None:
    """Run a worker until no fact is left, no task is due and none is running."""
    worker = Worker(database)
    worker.start()
    try:
        async with asyncio.timeout(10):
            while await work_left(database):
                await asyncio.sleep(0.01)
    finally:
        await worker.stop()


async def work_left(database: Database) -> int:
    """Count the facts and the due tasks that a worker has not done with."""
    # One statement: what a task publishes, and what becomes of a fact, must not pass unseen. A
    # task that was added after the look at the clock is due a moment later.
    async with database.read() as conn:
        waiting: int = await conn.fetch_value(
            """
            SELECT (SELECT count(*) FROM outbox) + (
                SELECT count(*) FROM tasks
                WHERE parked_at IS NULL AND (claimed_by IS NOT NULL OR due_at <= $1)
            )
            """,
            clock.micros() + _MOMENT,
        )
    return waiting
