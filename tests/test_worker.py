"""Events reach their reactions; what fails is retried, parked, and harms nobody else."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from hublet.core import queue
from hublet.core.database import Connection, Database
from hublet.core.outbox import Event, publish, reacts_to
from hublet.core.queue import claims
from registries import restored_registries
from scratch_database import notes_of, notes_table, wait_until
from workers import (
    add_tasks,
    note,
    parked_tasks,
    register_failing_handler,
    register_note_handler,
    running_workers,
    wait_until_all_ended,
)

Body = dict[str, Any]


@pytest.fixture(autouse=True)
def _registrations() -> Iterator[None]:
    # Printing the traceback of each failure would take longer than all the rest.
    with capture_logs(), restored_registries():
        Event.catalogue[Knitted.kind] = Knitted
        yield


@pytest.fixture(autouse=True)
async def _notes(database: Database) -> AsyncIterator[None]:
    async with notes_table(database):
        yield


@dataclass(frozen=True, slots=True, kw_only=True)
class Knitted(Event):
    """Something was knitted."""

    kind = "test.knitted-by-a-worker"
    name: str


async def knit(database: Database, name: str) -> None:
    async with database.transaction() as conn:
        await publish(conn, Knitted(name=name))


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a failed task be due again at once, near enough."""
    monkeypatch.setattr(claims, "retry_delay", lambda _attempts: timedelta(milliseconds=20))


async def test_an_event_reaches_every_reaction(database: Database) -> None:
    @reacts_to(Knitted)
    async def sell(conn: Connection, event: Knitted) -> None:
        await note(conn, f"sold {event.name}")

    @reacts_to(Knitted)
    async def wear(conn: Connection, event: Knitted) -> None:
        await note(conn, f"worn {event.name}")

    async with running_workers(database):
        await knit(database, "sock")
        await knit(database, "hat")
        await wait_until(lambda: _are_noted(database, 4))

    assert await notes_of(database) == ["sold hat", "sold sock", "worn hat", "worn sock"]


async def _are_noted(database: Database, count: int) -> bool:
    return len(await notes_of(database)) == count


async def test_events_from_before_the_start_are_found(database: Database) -> None:
    @reacts_to(Knitted)
    async def wear(conn: Connection, event: Knitted) -> None:
        await note(conn, event.name)

    await knit(database, "sock")

    async with running_workers(database, poll_seconds=60):
        await wait_until(lambda: _are_noted(database, 1))


async def test_a_commit_wakes_the_worker_without_polling(database: Database) -> None:
    @reacts_to(Knitted)
    async def wear(conn: Connection, event: Knitted) -> None:
        await note(conn, event.name)

    async with running_workers(database, poll_seconds=60):
        # Idle long enough for its first looks to be over.
        await asyncio.sleep(0.3)
        for number in range(5):
            await knit(database, f"sock {number}")
            await wait_until(lambda: _are_noted(database, number + 1))  # noqa: B023 - awaited at once


async def test_a_delayed_task_is_run_when_it_is_due_without_polling(database: Database) -> None:
    register_note_handler()
    task = queue.NewTask(kind="test.note", body='{"name":"a"}', delay=timedelta(seconds=0.3))

    async with running_workers(database, poll_seconds=60):
        async with database.transaction() as conn:
            await queue.add(conn, task)
        await asyncio.sleep(0.1)
        assert await notes_of(database) == []
        await wait_until(lambda: _are_noted(database, 1))


async def test_a_reaction_that_fails_neither_undoes_nor_blocks_the_others(
    database: Database, short_waits: None
) -> None:
    attempts = 0

    @reacts_to(Knitted)
    async def wear(conn: Connection, event: Knitted) -> None:
        nonlocal attempts
        attempts += 1
        await note(conn, f"worn {event.name}")
        if attempts < 3:
            raise ValueError("It itches.")

    @reacts_to(Knitted)
    async def sell(conn: Connection, event: Knitted) -> None:
        await note(conn, f"sold {event.name}")

    async with running_workers(database):
        await knit(database, "sock")
        await wait_until(lambda: _are_noted(database, 2))

    assert attempts == 3
    assert await notes_of(database) == ["sold sock", "worn sock"]
    assert await parked_tasks(database) == []


@pytest.mark.parametrize("added_as_slow", [True, False])
async def test_a_task_in_the_wrong_lane_finds_its_handler(
    database: Database, *, added_as_slow: bool
) -> None:
    """Whoever adds a task may not know its handler, as a command line that imports little."""
    given: list[object] = []
    register: Any = queue.handles if added_as_slow else queue.handles_slowly

    @register("test.stray")
    async def stray(place: object, _body: Body) -> None:
        given.append(place)

    await add_tasks(database, "test.stray", "a")
    async with database.transaction() as conn:
        await conn.execute("UPDATE tasks SET slow = $1", added_as_slow)
    async with running_workers(database):
        await wait_until_all_ended(database)

    assert [isinstance(place, Connection) for place in given] == [added_as_slow]
    assert [isinstance(place, Database) for place in given] == [not added_as_slow]


async def test_events_are_handed_on_while_tasks_keep_failing(
    database: Database, short_waits: None
) -> None:
    register_failing_handler(*[ValueError("It tore.")] * 1000)

    @reacts_to(Knitted)
    async def wear(conn: Connection, event: Knitted) -> None:
        await note(conn, event.name)

    await add_tasks(database, "test.fail", *(f"f{number}" for number in range(30)))
    async with running_workers(database, batch_size=5, max_attempts=1000):
        await knit(database, "sock")
        await wait_until(lambda: _are_noted(database, 1))
