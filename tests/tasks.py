"""Short words for what tests do with the queue."""

from datetime import timedelta
from typing import Any

from hublet.core import queue
from hublet.core.database import Database
from hublet.core.queue import NewTask, Task

LEASE = timedelta(seconds=30)
SECOND = timedelta(seconds=1)


async def add(database: Database, *keys: str, **changes: Any) -> None:
    async with database.transaction() as conn:
        for key in keys:
            await queue.add(conn, NewTask(**({"kind": "knit", "body": "{}", "key": key} | changes)))


async def claim(database: Database, worker: str = "ada", **changes: Any) -> list[Task]:
    wanted: dict[str, Any] = {"slow": False, "limit": 10, "lease": LEASE}
    async with database.transaction() as conn:
        return await queue.claim(conn, worker=worker, **(wanted | changes))


async def claimed(database: Database, worker: str = "ada", **changes: Any) -> list[str]:
    return [task.id for task in await claim(database, worker, **changes)]


async def fail(database: Database, task: Task, *, most: int = 9, broke: bool = False) -> None:
    async with database.transaction() as conn:
        await queue.fail(conn, task, error="It tore.", max_attempts=most, broke=broke)


async def finish(database: Database, task: Task) -> bool:
    async with database.transaction() as conn:
        return await queue.finish(conn, task)


async def waiting(database: Database) -> tuple[int, int]:
    async with database.read() as conn:
        return await queue.count_waiting(conn), await queue.count_parked(conn)


async def next_due(database: Database, **lane: bool) -> int | None:
    async with database.read() as conn:
        return await queue.next_due(conn, **lane)
