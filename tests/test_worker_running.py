"""Workers side by side: what they run beside each other, keep, lose, hand back and take over."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

import hublet.worker as worker_module
from hublet.core import clock, outbox, queue
from hublet.core.database import Connection, Database, DatabaseUnavailable
from hublet.core.leases import LeaseKeeper, WorkerPresence
from hublet.core.queue import Task
from hublet.core.queue.leases import TaskLeases
from hublet.events import CredentialCreated
from patience import SOON_SECONDS
from registries import restored_registries
from scratch_database import wait_until
from tasks import claim
from workers import (
    RunCounter,
    add_tasks,
    is_running,
    register_slow_handler,
    running_workers,
    set_grace,
    set_worker,
    task_states,
    wait_until_all_ended,
    wait_until_extended,
)

Body = dict[str, Any]


@pytest.fixture(autouse=True)
def _registrations() -> Iterator[None]:
    with capture_logs(), restored_registries():
        yield


async def test_slow_tasks_run_beside_each_other_but_not_too_many(database: Database) -> None:
    watched = RunCounter()

    @queue.handles_slowly("test.sail")
    async def sail(_database: Database, body: Body) -> None:
        # Of different lengths, so that places become free one by one.
        await watched.run(body["name"], 0.05 * (1 + "abcdefghij".index(body["name"]) % 3))

    await add_tasks(database, "test.sail", *"abcdefghij")
    async with running_workers(database, concurrency=3):
        await wait_until_all_ended(database)

    assert watched.most_at_once == 3
    assert watched.runs == Counter("abcdefghij")


async def test_quick_tasks_run_while_all_slow_places_are_taken(database: Database) -> None:
    register_slow_handler(60)
    done = asyncio.Event()

    @queue.handles("test.quick")
    async def hurry(_conn: Connection, _body: Body) -> None:
        done.set()

    set_grace(database, 0)
    await add_tasks(database, "test.sail", *"abcdef")
    async with running_workers(database, concurrency=2):
        await asyncio.sleep(0.2)
        await add_tasks(database, "test.quick", "quick")
        async with asyncio.timeout(SOON_SECONDS):
            await done.wait()


async def test_a_worker_whose_slow_places_are_taken_looks_for_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = register_slow_handler(60)
    looks = 0
    look = TaskLeases.seconds_until_due

    async def counted(self: TaskLeases, *, slow: bool) -> float | None:
        nonlocal looks
        looks += 1
        return await look(self, slow=slow)

    set_grace(database, 0)
    await add_tasks(database, "test.sail", *"abcdef")
    async with running_workers(database, concurrency=2, poll_seconds=60):
        await wait_until(lambda: is_running(watched, "b"))
        await asyncio.sleep(0.3)
        monkeypatch.setattr(TaskLeases, "seconds_until_due", counted)
        await asyncio.sleep(0.5)

    assert looks <= 2


async def test_a_long_task_is_not_run_twice_while_its_worker_lives(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, may_end = RunCounter(), asyncio.Event()
    # As often as the worker looks, not when a third of the lease has passed.
    monkeypatch.setattr(LeaseKeeper, "extend_when_due", LeaseKeeper.extend)

    @queue.handles_slowly("test.sail")
    async def sail(_database: Database, body: Body) -> None:
        await watched.run(body["name"], 0)
        await may_end.wait()

    await add_tasks(database, "test.sail", "a")
    # Long enough for a machine that stops this process for seconds.
    async with running_workers(database, 3, lease_seconds=12):
        await wait_until_extended(database, "a")
        may_end.set()
        await wait_until_all_ended(database)

    assert watched.runs == Counter("a")


async def test_a_long_task_is_not_run_twice_when_its_worker_could_not_keep_the_lease(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database was away longer than the lease; back again, the task must not look free."""
    watched = register_slow_handler(1.2)

    async def fail_to_extend(_: LeaseKeeper[Task]) -> None:
        raise DatabaseUnavailable("away")

    monkeypatch.setattr(LeaseKeeper, "extend_when_due", fail_to_extend)
    await add_tasks(database, "test.sail", "a")

    async with running_workers(database, lease_seconds=0.3):
        await wait_until_all_ended(database)

    assert watched.runs == Counter("a")


async def test_a_moved_clock_does_not_run_a_running_task_again(database: Database) -> None:
    watched = register_slow_handler(0.6)
    await add_tasks(database, "test.sail", "a")

    async with running_workers(database, 2):
        await wait_until(lambda: is_running(watched, "a"))
        clock.move(timedelta(days=300))
        await wait_until_all_ended(database)

    assert watched.runs == Counter("a")


async def test_many_workers_never_run_one_task_at_the_same_time(database: Database) -> None:
    chance = random.Random(11)
    watched = RunCounter()

    @queue.handles_slowly("test.slow")
    async def slow(_database: Database, body: Body) -> None:
        await watched.run(body["name"], chance.random() * 0.1)

    @queue.handles("test.quick")
    async def quick(_conn: Connection, body: Body) -> None:
        await watched.run(body["name"], chance.random() * 0.005)

    async with running_workers(database, 4, batch_size=3, concurrency=4):
        for start in range(0, 60, 20):
            names = range(start, start + 20)
            await add_tasks(database, "test.slow", *(f"slow{name}" for name in names))
            await add_tasks(database, "test.quick", *(f"quick{name}" for name in names))
        await wait_until_all_ended(database)

    assert watched.overlaps == []
    assert set(watched.runs.values()) == {1}
    assert len(watched.runs) == 120


async def test_what_a_dead_neighbour_held_is_taken_over_at_once(database: Database) -> None:
    watched = register_slow_handler(0)
    folder = database.hub.settings.database.data_dir / "workers"
    await add_tasks(database, "test.sail", "a")
    WorkerPresence(folder, "dead").vanish()
    await claim(database, "dead", slow=True, lease=timedelta(hours=1))

    async with running_workers(database, poll_seconds=60):
        await wait_until_all_ended(database)

    assert watched.runs == Counter("a")
    assert list(folder.iterdir()) == []


async def test_a_living_neighbour_is_left_alone(database: Database) -> None:
    watched = register_slow_handler(0)
    folder = database.hub.settings.database.data_dir / "workers"
    await add_tasks(database, "test.sail", "a")
    neighbour = WorkerPresence(folder, "neighbour")
    await claim(database, "neighbour", slow=True, lease=timedelta(hours=1))

    async with running_workers(database):
        await asyncio.sleep(0.3)
        assert watched.runs == Counter()
    neighbour.leave()


async def test_who_lost_a_lease_stops_working_on_the_task(database: Database) -> None:
    watched = register_slow_handler(60)
    set_grace(database, 0)
    await add_tasks(database, "test.sail", "a", "b")

    async with running_workers(database, lease_seconds=1):
        await wait_until(lambda: is_running(watched, "b"))
        async with database.transaction() as conn:
            await conn.execute(
                "UPDATE tasks SET claimed_by = 'thief', attempts = attempts + 1, due_at = $1 "
                "WHERE id = 'a'",
                clock.micros() + 10**9,
            )
        await wait_until(lambda: _was_cancelled(watched, "a"))
        assert watched.cancelled == ["a"]

    assert await task_states(database) == [("a", 2, "thief"), ("b", 0, None)]


async def _was_cancelled(watched: RunCounter, name: str) -> bool:
    return name in watched.cancelled


async def test_a_quick_task_that_was_lost_meanwhile_is_undone(database: Database) -> None:
    @queue.handles("test.quick")
    async def lose(conn: Connection, body: Body) -> None:
        await conn.execute("INSERT INTO facts (name, value) VALUES ($1, '')", body["name"])
        await conn.execute("UPDATE tasks SET attempts = 7, claimed_by = 'thief' WHERE id = 'a'")

    await add_tasks(database, "test.quick", "a")
    set_worker(database, poll_seconds=60)
    async with running_workers(database):
        await asyncio.sleep(0.3)

        async with database.read() as conn:
            assert await conn.fetch_value("SELECT count(*) FROM facts") == 0


def test_the_load_is_what_the_process_used_of_late(monkeypatch: pytest.MonkeyPatch) -> None:
    def set_clocks(at: float, used: float) -> None:
        monkeypatch.setattr(worker_module, "monotonic", lambda: at)
        monkeypatch.setattr(worker_module, "process_time", lambda: used)

    set_clocks(100.0, 7.0)
    load = worker_module._ProcessLoad()  # noqa: SLF001 - a part of the worker
    found = []
    # Too early to tell; 0.6 of a core; 0.4; 1.8, as with threads.
    for at, used in ((100.05, 7.05), (101.0, 7.6), (102.0, 8.0), (103.0, 9.8)):
        set_clocks(at, used)
        found.append(load.is_high())

    assert found == [False, True, False, True]


@asynccontextmanager
async def rounds_of_a_worker(
    database: Database, monkeypatch: pytest.MonkeyPatch, *, is_busy: bool, gather_seconds: float
) -> AsyncIterator[list[int]]:
    """Run a worker; yield how many events it hands on at a time, of which one has come."""
    rounds = list[int]()
    dispatch = outbox.dispatch

    async def noted(conn: Connection, *, limit: int) -> int:
        count = await dispatch(conn, limit=limit)
        rounds.extend([count] if count else [])
        return count

    monkeypatch.setattr(outbox, "dispatch", noted)
    monkeypatch.setattr(worker_module, "_GATHER_SECONDS", gather_seconds)
    monkeypatch.setattr(worker_module._ProcessLoad, "is_high", lambda _: is_busy)  # noqa: SLF001 - as above
    set_grace(database, 0)
    async with running_workers(database):
        await publish_singly(database, 1)
        await wait_for_sum(rounds, 1)
        yield rounds


async def publish_singly(database: Database, count: int) -> None:
    for _ in range(count):
        async with database.transaction() as conn:
            await outbox.publish(conn, CredentialCreated(token_id="t", user_id="u", name="n"))


async def wait_for_sum(rounds: list[int], count: int) -> None:
    async with asyncio.timeout(SOON_SECONDS):
        while sum(rounds) < count:
            await asyncio.sleep(0.01)


async def test_events_gather_while_the_process_is_busy(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rounds_of_a_worker(
        database, monkeypatch, is_busy=True, gather_seconds=3600
    ) as rounds:
        await publish_singly(database, 9)
        await asyncio.sleep(0.2)

        assert rounds == [1]


@pytest.mark.parametrize(
    ("is_busy", "few", "gather_seconds"),
    [
        pytest.param(True, 10, 0.05, id="after the rest"),
        pytest.param(False, 10, 3600, id="a process that is not busy"),
        pytest.param(True, 0, 3600, id="after a step that found many"),
    ],
)
async def test_events_are_handed_on(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_busy: bool,
    few: int,
    gather_seconds: float,
) -> None:
    monkeypatch.setattr(worker_module, "_FEW", few)
    async with rounds_of_a_worker(
        database, monkeypatch, is_busy=is_busy, gather_seconds=gather_seconds
    ) as rounds:
        await publish_singly(database, 9)
        await wait_for_sum(rounds, 10)
