"""Running the command in a test, and looking at what it did."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from hublet.core import queue
from hublet.core.config import Settings
from hublet.core.database import Connection
from hublet.core.queue import NewTask
from hublet.serving import open_hub

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Hublet(Protocol):
    def __call__(self, *arguments: str, stdin: str = "") -> Outcome: ...


def location_flags(settings: Settings) -> list[str]:
    """Return the flags that point a command to this hub."""
    url = settings.database.url
    flags = ["--data-dir", str(settings.database.data_dir)]
    return flags if url is None else [*flags, "--database-url", url]


def in_hub(settings: Settings, work: Callable[[Connection], Awaitable[T]]) -> T:
    """Look into the hub, or change it, with the keys that the commands use."""

    async def run() -> T:
        async with open_hub(settings) as database, database.transaction() as conn:
            return await work(conn)

    return asyncio.run(run())


def park_task(settings: Settings, *, kind: str, error: str) -> str:
    """Park a task and return its id."""

    async def work(conn: Connection) -> str:
        await queue.add(conn, NewTask(kind=kind, body="{}", key=f"task of {kind}"))
        tasks = await queue.claim(
            conn, worker="test", slow=False, limit=10, lease=timedelta(minutes=1)
        )
        [task] = [task for task in tasks if task.kind == kind]
        await queue.fail(conn, task, error=error, max_attempts=1)
        return task.id

    return in_hub(settings, work)
