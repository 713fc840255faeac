"""Tasks: records, handlers, and SQL to add, count and unpark them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import msgspec

from hublet.core import clock
from hublet.core.clock import micros
from hublet.core.database import Connection, Database, Reader, Row
from hublet.core.dataclasses import dataclass
from hublet.core.ids import new_object_id
from hublet.core.leases import WorkerClaims
from hublet.core.tracing import current_traceparent


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskHandler:
    """How a kind of task is run.

    A quick one gets the transaction in which its task is also removed: both or neither.
    A slow one gets the database, may use the network, and is run beside others.
    """

    run: Callable[[Any, Any], Awaitable[None]]
    reads: Any
    slow: bool


handlers: dict[str, TaskHandler] = {}

# Then the next task goes on, so that a worker that stops has little to wait for.
_BATCHES_OF_TASK = 50


QuickRun = TypeVar("QuickRun", bound=Callable[[Connection, Any], Awaitable[None]])
SlowRun = TypeVar("SlowRun", bound=Callable[[Database, Any], Awaitable[None]])


def handles(kind: str, *, reads: Any = dict[str, Any]) -> Callable[[QuickRun], QuickRun]:
    """Register a quick handler; the body is decoded as the type it reads."""

    def register(run: QuickRun) -> QuickRun:
        handlers[kind] = TaskHandler(run=run, reads=reads, slow=False)
        return run

    return register


def handles_slowly(kind: str, *, reads: Any = dict[str, Any]) -> Callable[[SlowRun], SlowRun]:
    """Register a slow handler: no transaction is open while it runs, and it may run again."""

    def register(run: SlowRun) -> SlowRun:
        handlers[kind] = TaskHandler(run=run, reads=reads, slow=True)
        return run

    return register


def decode(handler: TaskHandler, body: str) -> Any:
    return msgspec.json.decode(body, type=handler.reads)


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
    # The span that caused it; by default the one around the caller.
    trace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    id: str
    kind: str
    body: str
    # How often it was claimed, this time included.
    attempts: int
    claimed_by: str
    # The span that caused it.
    trace: str | None = None


async def add(conn: Connection, task: NewTask) -> None:
    await add_many(conn, [task])


async def add_many(conn: Connection, tasks: Sequence[NewTask]) -> None:
    """Add tasks; those that are due now belong to the trace in which they are added.

    A delayed one begins a trace: tasks that add themselves again would make one without end.
    """
    if not tasks:
        return
    now, trace = micros(), current_traceparent()
    await conn.execute_many(
        """
        INSERT INTO tasks (id, kind, slow, body, created_at, due_at, attempts, trace)
        VALUES ($1, $2, $3, $4, $5, $6, 0, $7) ON CONFLICT (id) DO NOTHING
        """,
        [
            (
                task.key or new_object_id(), task.kind, _is_slow(task.kind), task.body,
                now, _due_at(task, now), None if task.delay else task.trace or trace,
            )
            for task in tasks
        ],
    )  # fmt: skip
    conn.wake(CHANNEL)


async def add_daily(conn: Connection, kind: str, *, delay: timedelta = timedelta()) -> None:
    """Add a task without a body, once for the day on which it is due; again changes nothing."""
    day = (clock.now() + delay).date().isoformat()
    await add(conn, NewTask(kind=kind, body="{}", key=f"{kind}.{day}", delay=delay))


async def run_batches(
    database: Database,
    batch: Callable[[Database], Awaitable[bool]],
    *,
    schedule: Callable[[Connection], Awaitable[None]],
) -> None:
    """Do batches of long work until one returns False; after fifty, schedule a task for the rest.

    After each it pauses for as long as the batch took, so that the hub serves others.
    """
    for _ in range(_BATCHES_OF_TASK):
        started_at = clock.monotonic()
        if not await batch(database):
            return
        await asyncio.sleep(clock.monotonic() - started_at)
    async with database.transaction() as conn:
        await schedule(conn)


def _due_at(task: NewTask, now: int) -> int:
    # Tasks are claimed in the order they became due, and nothing has been due for longer.
    return 0 if task.urgent else now + task.delay // timedelta(microseconds=1)


def _is_slow(kind: str) -> bool:
    # A process that does not know the handler guesses; the worker corrects it.
    handler = handlers.get(kind)
    return handler is not None and handler.slow


async def count_waiting(conn: Reader) -> int:
    count: int = await conn.fetch_value("SELECT count(*) FROM tasks WHERE parked_at IS NULL")
    return count


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedTask:
    id: str
    kind: str
    attempts: int
    error: str
    parked_at: int


async def count_parked(conn: Reader) -> int:
    count: int = await conn.fetch_value("SELECT count(*) FROM tasks WHERE parked_at IS NOT NULL")
    return count


async def list_parked(conn: Reader, *, limit: int = 100) -> list[ParkedTask]:
    rows = await conn.fetch_all(
        """
        SELECT id, kind, attempts, error, parked_at FROM tasks WHERE parked_at IS NOT NULL
        ORDER BY parked_at, id LIMIT $1
        """,
        limit,
    )
    return [_parked_task(row) for row in rows]


def _parked_task(row: Row) -> ParkedTask:
    return ParkedTask(
        id=row["id"],
        kind=row["kind"],
        attempts=row["attempts"],
        error=row["error"] or "",
        parked_at=row["parked_at"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCount:
    """How many tasks of a kind there are, by what they wait for."""

    kind: str
    # To be run now; later, at a time or after a failure; being run; parked.
    due: int
    later: int
    running: int
    parked: int


async def count_by_kind(conn: Reader) -> list[TaskCount]:
    rows = await conn.fetch_all(
        """
        SELECT kind,
            sum(CASE WHEN parked_at IS NULL AND claimed_by IS NULL AND due_at <= $1
                THEN 1 ELSE 0 END) AS due,
            sum(CASE WHEN parked_at IS NULL AND claimed_by IS NULL AND due_at > $1
                THEN 1 ELSE 0 END) AS later,
            sum(CASE WHEN claimed_by IS NOT NULL THEN 1 ELSE 0 END) AS running,
            sum(CASE WHEN parked_at IS NOT NULL THEN 1 ELSE 0 END) AS parked
        FROM tasks GROUP BY kind ORDER BY kind
        """,
        micros(),
    )
    return [
        TaskCount(
            kind=row["kind"],
            due=int(row["due"]),
            later=int(row["later"]),
            running=int(row["running"]),
            parked=int(row["parked"]),
        )
        for row in rows
    ]


async def next_due_of(conn: Reader, kind: str) -> int | None:
    """Return when the next task of a kind is due, in microseconds."""
    due: int | None = await conn.fetch_value(
        "SELECT min(due_at) FROM tasks WHERE kind = $1 AND parked_at IS NULL", kind
    )
    return due


async def list_claims(conn: Reader) -> list[WorkerClaims]:
    """Return how many tasks each worker runs now."""
    rows = await conn.fetch_all(
        """
        SELECT claimed_by, count(*), min(due_at) FROM tasks
        WHERE claimed_by IS NOT NULL GROUP BY claimed_by ORDER BY claimed_by
        """
    )
    return [WorkerClaims(worker=name, count=count, lease_ends=ends) for name, count, ends in rows]


async def drop_parked(conn: Connection, task_id: str) -> ParkedTask | None:
    """Remove a parked task for good; return it, or None when there is none."""
    row = await conn.fetch_one(
        """
        DELETE FROM tasks WHERE id = $1 AND parked_at IS NOT NULL
        RETURNING id, kind, attempts, error, parked_at
        """,
        task_id,
    )
    return _parked_task(row) if row else None


async def retry_parked(conn: Connection, *, task_id: str | None = None) -> int:
    """Give one parked task, or all of them, a fresh start."""
    count = await conn.execute(
        """
        UPDATE tasks SET parked_at = NULL, error = NULL, attempts = 0, due_at = $1
        WHERE parked_at IS NOT NULL AND ($2 = '' OR id = $2)
        """,
        micros(), task_id or "",
    )  # fmt: skip
    conn.wake(CHANNEL)
    return count
