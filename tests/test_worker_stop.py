"""A worker that is stopped ends what it can and hands back the rest."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from hublet.core import queue
from hublet.core.database import Connection, Database
from hublet.worker import Worker
from registries import restored_registries
from scratch_database import wait_until
from workers import (
    RunCounter,
    add_tasks,
    is_running,
    register_slow_handler,
    running_workers,
    set_grace,
    task_states,
)

Body = dict[str, Any]


@pytest.fixture(autouse=True)
def _registrations() -> Iterator[None]:
    with capture_logs(), restored_registries():
        yield


async def test_stop_waits_for_what_ends_in_time_and_hands_back_the_rest(
    database: Database,
) -> None:
    watched = RunCounter()

    @queue.handles_slowly("test.sail")
    async def sail(_database: Database, body: Body) -> None:
        await watched.run(body["name"], 0.3 if body["name"] == "short" else 60)

    set_grace(database, 1)
    await add_tasks(database, "test.sail", "long", "short")
    async with running_workers(database):
        await wait_until(lambda: is_running(watched, "short"))

    assert watched.runs == Counter(["long", "short"])
    assert watched.cancelled == ["long"]
    assert await task_states(database) == [("long", 0, None)]


async def test_stop_lets_the_running_batch_end(database: Database) -> None:
    watched = RunCounter()

    @queue.handles("test.quick")
    async def quick(_conn: Connection, body: Body) -> None:
        await watched.run(body["name"], 0.1)

    await add_tasks(database, "test.quick", *"abcd")
    async with running_workers(database, batch_size=3):
        await wait_until(lambda: is_running(watched, "a"))

    assert watched.runs == Counter("abc")
    assert await task_states(database) == [("d", 0, None)]


async def test_a_batch_that_does_not_end_in_time_is_undone_and_handed_back(
    database: Database,
) -> None:
    watched = RunCounter()

    @queue.handles("test.quick")
    async def quick(conn: Connection, body: Body) -> None:
        await conn.execute("INSERT INTO facts (name, value) VALUES ($1, '')", body["name"])
        await watched.run(body["name"], 60 if body["name"] == "b" else 0)

    set_grace(database, 0.2)
    await add_tasks(database, "test.quick", *"abc")
    async with running_workers(database):
        await wait_until(lambda: is_running(watched, "b"))

    assert await task_states(database) == [("a", 0, None), ("b", 0, None), ("c", 0, None)]
    async with database.read() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM facts") == 0


async def test_a_stopped_worker_starts_nothing_more(database: Database) -> None:
    watched = register_slow_handler(0)
    worker = Worker(database)
    worker.start()
    await asyncio.sleep(0.1)
    await worker.stop()

    await add_tasks(database, "test.sail", "a")
    await asyncio.sleep(0.2)

    assert watched.runs == Counter()


async def test_a_worker_can_be_stopped_without_having_been_started(database: Database) -> None:
    await Worker(database).stop()
