"""Workers inside a test: started, watched, stopped, or run until nothing is left to do."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from hublet.core import clock, queue
from hublet.core.database import Connection, Database
from hublet.core.queue import NewTask, ParkedTask
from hublet.worker import Worker
from patience import SOON_SECONDS
from scratch_database import wait_until


async def drain(database: Database) -> None:
    """Run a worker until no event is left, no task is due and none is running."""
    worker = Worker(database)
    worker.start()
    try:
        async with asyncio.timeout(SOON_SECONDS):
            while await work_left(database):
                await asyncio.sleep(0.01)
    finally:
        await worker.stop()


async def work_left(database: Database) -> bool:
    """Tell whether there is an event or a due task that a worker has not done with."""
    # One statement: what a task publishes, and what becomes of an event, must not pass unseen.
    async with database.read() as conn:
        row = await conn.fetch_one(
            """
            SELECT (SELECT count(*) FROM outbox)
                + (SELECT count(*) FROM tasks WHERE parked_at IS NULL AND claimed_by IS NOT NULL)
                AS begun,
                (SELECT min(due_at) FROM tasks WHERE parked_at IS NULL AND claimed_by IS NULL)
                AS next_due
            """
        )
    assert row is not None
    # The clock is read last: whatever the statement saw was added before, however slow it was.
    return row["begun"] > 0 or (row["next_due"] is not None and row["next_due"] <= clock.micros())


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
async def running_workers(
    database: Database, count: int = 1, **changes: Any
) -> AsyncIterator[None]:
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


async def parked_tasks(database: Database) -> list[ParkedTask]:
    async with database.read() as conn:
        return await queue.list_parked(conn)


async def wait_until_all_ended(database: Database) -> None:
    """Wait until every task is done or parked."""

    async def all_ended() -> bool:
        async with database.read() as conn:
            return await queue.count_waiting(conn) == 0

    await wait_until(all_ended)


async def note(conn: Connection, note_id: str) -> None:
    await conn.execute("INSERT INTO notes (id) VALUES ($1)", note_id)


def register_note_handler() -> None:
    """Register a handler that writes a note."""

    @queue.handles("test.note")
    async def write_note(conn: Connection, body: dict[str, Any]) -> None:
        await note(conn, body["name"])


def register_failing_handler(*errors: BaseException) -> list[str]:
    """Register a handler that writes a note, then raises each of these in turn, then succeeds."""
    names: list[str] = []
    left = list(errors)

    @queue.handles("test.fail")
    async def write_note_and_fail(conn: Connection, body: dict[str, Any]) -> None:
        names.append(body["name"])
        await note(conn, body["name"])
        if left:
            raise left.pop(0)

    return names


class RunCounter:
    """Counts how often tasks were run, and how many ran at the same time."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.inside: Counter[str] = Counter()
        self.most_at_once = 0
        self.overlaps: list[str] = []
        self.cancelled: list[str] = []

    async def run(self, name: str, seconds: float) -> None:
        self.runs[name] += 1
        if self.inside[name]:
            self.overlaps.append(name)
        self.inside[name] += 1
        self.most_at_once = max(self.most_at_once, self.inside.total())
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise
        finally:
            self.inside[name] -= 1


def register_slow_handler(seconds: float) -> RunCounter:
    """Register a slow handler that takes so long."""
    watched = RunCounter()

    @queue.handles_slowly("test.sail")
    async def sail(_database: Database, body: dict[str, Any]) -> None:
        await watched.run(body["name"], seconds)

    return watched


async def wait_until_extended(database: Database, task_id: str) -> None:
    """Wait until the lease on a task that is held has been extended."""

    async def lease() -> int | None:
        async with database.read() as conn:
            until: int | None = await conn.fetch_value(
                "SELECT due_at FROM tasks WHERE id = $1 AND claimed_by IS NOT NULL", task_id
            )
        return until

    seen: set[int] = set()

    async def was_extended() -> bool:
        if (until := await lease()) is not None:
            seen.add(until)
        return len(seen) > 1

    await wait_until(was_extended)


async def is_running(watched: RunCounter, name: str) -> bool:
    return watched.inside[name] > 0


async def task_states(database: Database) -> list[tuple[str, int, str | None]]:
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT id, attempts, claimed_by FROM tasks ORDER BY id")
    return [tuple(row) for row in rows]
