"""Tasks, and how they come into the queue."""

from collections.abc import Sequence
from datetime import timedelta

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.core.light_dataclasses import dataclass
from hublet.core.queue.handlers import handlers

CHANNEL = "tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    kind: str
    body: str
    # A second task with the same key is not added while the first exists.
    key: str | None = None
    delay: timedelta = timedelta()
    # Claimed before everything that merely waits its turn.
    urgent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    id: str
    kind: str
    body: str
    # How often it was claimed, this time included.
    attempts: int
    claimed_by: str


async def add(conn: Connection, task: NewTask) -> None:
    await add_many(conn, [task])


async def add_many(conn: Connection, tasks: Sequence[NewTask]) -> None:
    if not tasks:
        return
    now = micros()
    await conn.execute_many(
        """
        INSERT INTO tasks (id, kind, slow, body, created_at, due_at, attempts)
        VALUES ($1, $2, $3, $4, $5, $6, 0) ON CONFLICT (id) DO NOTHING
        """,
        [
            (
                task.key or new_object_id(), task.kind, _is_slow(task.kind), task.body,
                now, _due(task, now),
            )
            for task in tasks
        ],
    )  # fmt: skip
    conn.wake(CHANNEL)


def _due(task: NewTask, now: int) -> int:
    # Tasks are claimed in the order they became due, and nothing has been due for longer.
    return 0 if task.urgent else now + task.delay // timedelta(microseconds=1)


def _is_slow(kind: str) -> bool:
    # A process that does not know the handler guesses; the worker corrects it.
    handler = handlers.get(kind)
    return handler is not None and handler.slow


async def count_waiting(conn: Reader) -> int:
    count: int = await conn.fetch_value("SELECT count(*) FROM tasks WHERE parked_at IS NULL")
    return count
