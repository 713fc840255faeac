"""The database goes away, processes are killed: work is neither lost nor done twice at once."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from hublet.core import queue
from hublet.core.database import Connection, Database, DatabaseUnavailable
from hublet.worker import Worker
from patience import SOON_SECONDS
from registries import restored_registries
from workers import (
    add_tasks,
    parked_tasks,
    running_workers,
    set_grace,
    set_worker,
    wait_until_all_ended,
    wait_until_extended,
)

Body = dict[str, Any]


@pytest.fixture(autouse=True)
def _registrations() -> Iterator[None]:
    with capture_logs(), restored_registries():
        yield


@asynccontextmanager
async def away(database: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Let the database refuse every transaction, and every read."""

    def refuse() -> None:
        raise DatabaseUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(database, "transaction", refuse)
        patch.setattr(database, "read", refuse)
        yield


def remembering() -> list[str]:
    """Register a quick and a slow handler that tell what they ran."""
    ran: list[str] = []

    @queue.handles("test.quick")
    async def quick(_conn: Connection, body: Body) -> None:
        ran.append(body["name"])

    @queue.handles_slowly("test.slow")
    async def slow(_database: Database, body: Body) -> None:
        ran.append(body["name"])

    return ran


async def test_a_worker_survives_that_the_database_is_away(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = remembering()
    async with running_workers(database):
        await asyncio.sleep(0.1)
        async with away(database, monkeypatch):
            database.wake([queue.CHANNEL, "outbox"])
            await asyncio.sleep(0.3)
        await add_tasks(database, "test.quick", "quick")
        await add_tasks(database, "test.slow", "slow")
        await wait_until_all_ended(database)

    assert sorted(ran) == ["quick", "slow"]


async def test_a_worker_may_start_before_its_database(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = remembering()
    await add_tasks(database, "test.quick", "a")
    worker = Worker(database)
    async with away(database, monkeypatch):
        worker.start()
        await asyncio.sleep(0.1)
    await wait_until_all_ended(database)
    await worker.stop()

    assert ran == ["a"]


async def test_a_slow_task_that_is_done_while_the_database_is_away_is_not_done_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = 0
    begun, sent = asyncio.Event(), asyncio.Event()

    @queue.handles_slowly("test.send")
    async def send(_database: Database, _body: Body) -> None:
        nonlocal runs
        runs += 1
        begun.set()
        await sent.wait()

    await add_tasks(database, "test.send", "a")
    async with running_workers(database):
        await begun.wait()
        async with away(database, monkeypatch):
            sent.set()
            await asyncio.sleep(0.7)
        await wait_until_all_ended(database)

    assert runs == 1
    assert await parked_tasks(database) == []


async def test_what_a_worker_could_not_hand_back_is_taken_over_at_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()

    @queue.handles_slowly("test.send")
    async def send(_database: Database, _body: Body) -> None:
        begun.set()
        await asyncio.sleep(60)

    set_grace(database, 0)
    await add_tasks(database, "test.send", "a")
    worker = Worker(database)
    worker.start()
    await begun.wait()
    async with away(database, monkeypatch):
        await worker.stop()
    ran = remembering()
    queue.handlers["test.send"] = queue.handlers["test.slow"]

    async with running_workers(database, poll_seconds=60):
        await wait_until_all_ended(database)

    assert ran == ["a"]


async def test_a_heart_that_stumbles_goes_on_beating(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the data folder is moved away below a running hub."""
    folder = database.hub.settings.database.data_dir / "workers"
    runs, may_end = 0, asyncio.Event()

    @queue.handles_slowly("test.send")
    async def send(_database: Database, _body: Body) -> None:
        nonlocal runs
        runs += 1
        await may_end.wait()

    await add_tasks(database, "test.send", "a")
    # Long enough for a machine that stops this process for seconds.
    async with running_workers(database, 2, lease_seconds=12):
        folder.rename(folder.with_name("moved"))
        await wait_until_extended(database, "a")
        may_end.set()
        await wait_until_all_ended(database)

    assert runs == 1


WORK = """
import asyncio, os, sys
from hublet.core import queue
from hublet.core.config import load
from hublet.core.database import open_database
from hublet.core.hub import Hub
from hublet.core.logs import configure
from hublet.core.sealing import KeyRing
from hublet.worker import Worker

@queue.handles_slowly("test.hang")
async def hang(database, body):
    print("hanging", flush=True)
    await asyncio.sleep(60)

@queue.handles("test.crash")
async def crash(conn, body):
    await conn.execute("INSERT INTO facts (name, value) VALUES ($1, '')", body["name"])
    if body["name"] == "guilty":
        os._exit(13)

@queue.handles_slowly("test.last")
async def last(database, body):
    while True:
        async with database.read() as conn:
            if await queue.count_waiting(conn) == 1:
                os._exit(0)
        await asyncio.sleep(0.02)

async def work():
    given = {"database.data_dir": sys.argv[1], "database.url": sys.argv[2] or None,
             "worker.max_attempts": 3}
    hub = Hub(settings=load(given, environ={}), keys=KeyRing.new())
    configure(hub.settings.logs)
    async with open_database(hub) as database:
        Worker(database).start()
        await asyncio.sleep(60)

asyncio.run(work())
"""


@contextmanager
def a_worker_process(database: Database) -> Iterator[subprocess.Popen[str]]:
    settings = database.hub.settings.database
    arguments = [sys.executable, "-c", WORK, str(settings.data_dir), settings.url or ""]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_the_work_of_a_killed_process_is_taken_over_at_once(database: Database) -> None:
    set_worker(database, poll_seconds=0.2)
    await add_tasks(database, "test.hang", "a")
    async with database.transaction() as conn:
        await conn.execute("UPDATE tasks SET slow = $1", True)
    with a_worker_process(database) as process:
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == "hanging\n"
        ran = remembering()
        queue.handlers["test.hang"] = queue.handlers["test.slow"]

        async with running_workers(database):
            await asyncio.sleep(0.5)
            assert ran == []
            process.send_signal(signal.SIGKILL)
            # The lease would have kept it for half a minute.
            await wait_until_all_ended(database)

    assert ran == ["a"]


async def test_a_task_that_kills_its_process_is_parked_and_its_neighbours_are_done(
    database: Database,
) -> None:
    await add_tasks(database, "test.crash", "a", "b", "guilty", "x", "y")
    await add_tasks(database, "test.last", "zz")
    async with database.transaction() as conn:
        await conn.execute("UPDATE tasks SET slow = $1 WHERE id = 'zz'", True)
    codes: list[int] = []
    while not codes or codes[-1] == 13:
        with a_worker_process(database) as process:
            async with asyncio.timeout(SOON_SECONDS * 3):
                codes.append(await asyncio.to_thread(process.wait))

    assert codes == [13, 13, 13, 0]
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT name FROM facts ORDER BY name")
    assert [row["name"] for row in rows] == ["a", "b", "x", "y"]
    (task,) = await parked_tasks(database)
    assert (task.id, task.error) == (
        "guilty",
        "RuntimeError: The worker died each time it ran this task.",
    )
