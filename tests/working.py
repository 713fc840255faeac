"""Workers inside a test: started, watched and stopped."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from hublet.core import queue
from hublet.core.database import Database
from hublet.core.queue import NewTask, ParkedTask
from hublet.worker import Worker
from scratch import soon


def set_worker(database: Database, **changes: Any) -> None:
    """Change settings of the workers that are made from now on."""
    settings = database.hub.settings
    database.hub = replace(
        database.hub, settings=replace(settings, worker=replace(settings.worker, **changes))
    )


def set_grace(database: Database, seconds: float) -> None:
    settings = database.hub.settings
    server = replace(settings.server, stop_grace_seconds=seconds)
    database.hub = replace(database.hub, settings=replace(settings, server=server))


@asynccontextmanager
async def working(database: Database, count: int = 1, **changes: Any) -> AsyncIterator[None]:
    """Run workers for as long as the block takes."""
    set_worker(database, **changes)
    workers = [Worker(database) for _ in range(count)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            await worker.stop()


async def add_tasks(database: Database, kind: str, *bodies: str) -> None:
    """Add a task for each body, in one commit; the body is also its key."""
    async with database.transaction() as conn:
        await queue.add_many(
            conn, [NewTask(kind=kind, body=f'{{"name":"{body}"}}', key=body) for body in bodies]
        )


async def parked(database: Database) -> list[ParkedTask]:
    async with database.read() as conn:
        return await queue.list_parked(conn)


async def until_all_ended(database: Database) -> None:
    """Wait until every task is done or parked."""

    async def all_ended() -> bool:
        async with database.read() as conn:
            return await queue.count_waiting(conn) == 0

    await soon(all_ended)
