"""What fails is retried, parked with its error, and harms nobody else."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from hublet.core import queue
from hublet.core.database import Connection, Database, DatabaseUnavailable
from hublet.core.queue import ParkedTask, claims
from registries import restored_registries
from scratch_database import notes_of, notes_table
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
        yield


@pytest.fixture(autouse=True)
async def _notes(database: Database) -> AsyncIterator[None]:
    async with notes_table(database):
        yield


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a failed task be due again at once, near enough."""
    monkeypatch.setattr(claims, "retry_delay", lambda _attempts: timedelta(milliseconds=20))


async def test_what_fails_too_often_is_parked_with_its_redacted_error(
    database: Database, short_waits: None
) -> None:
    names = register_failing_handler(*[ValueError("It tore: password=s3cr3t")] * 9)
    register_note_handler()
    async with running_workers(database, max_attempts=3):
        await add_tasks(database, "test.fail", "torn")
        await add_tasks(database, "test.note", "whole")
        await wait_until_all_ended(database)

    (task,) = await parked_tasks(database)
    assert task == ParkedTask(
        id="torn",
        kind="test.fail",
        attempts=3,
        error="ValueError: It tore: password=***",
        parked_at=task.parked_at,
    )
    assert names == ["torn"] * 3
    assert await notes_of(database) == ["whole"]


async def test_a_parked_task_that_is_retried_runs_again(
    database: Database, short_waits: None
) -> None:
    register_failing_handler(ValueError("It tore."))
    async with running_workers(database, max_attempts=1):
        await add_tasks(database, "test.fail", "a")
        await wait_until_all_ended(database)
        assert await notes_of(database) == []
        async with database.transaction() as conn:
            await queue.retry_parked(conn)
        await wait_until_all_ended(database)

    assert await notes_of(database) == ["a"]


class Unprintable(Exception):
    """An error that fails while it is told."""

    def __str__(self) -> str:
        raise RuntimeError("No words.")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param(ValueError("It tore."), "ValueError: It tore.", id="an ordinary one"),
        pytest.param(KeyError("x"), "KeyError: 'x'", id="one that prints what it holds"),
        pytest.param(ValueError("a\x00\udcff"), "ValueError: a?", id="letters that cannot be kept"),
        pytest.param(Unprintable(), "Unprintable", id="one that cannot be told"),
        pytest.param(asyncio.CancelledError(), "CancelledError: ", id="a cancellation of its own"),
        pytest.param(
            DatabaseUnavailable("It waited for itself."),
            "DatabaseUnavailable: It waited for itself.",
            id="a database that is away only for it",
        ),
    ],
)
async def test_whatever_a_handler_raises_fails_its_task_alone(
    database: Database, error: BaseException, told: str
) -> None:
    register_failing_handler(error)
    register_note_handler()
    async with running_workers(database, max_attempts=1):
        await add_tasks(database, "test.note", "before")
        await add_tasks(database, "test.fail", "error")
        await add_tasks(database, "test.note", "next")
        await wait_until_all_ended(database)
        # The worker is still at work.
        await add_tasks(database, "test.note", "zuletzt")
        await wait_until_all_ended(database)

    assert [(task.id, task.error) for task in await parked_tasks(database)] == [("error", told)]
    assert await notes_of(database) == ["before", "next", "zuletzt"]


@pytest.mark.parametrize(
    ("kind", "body", "error"),
    [
        pytest.param(
            "test.note", "{", "DecodeError: Input data was truncated", id="a body that is no JSON"
        ),
        pytest.param(
            "test.note",
            "[]",
            "ValidationError: Expected `object`, got `array`",
            id="a body of another shape",
        ),
        pytest.param(
            "test.unknown",
            "{}",
            "LookupError: This version has no handler for test.unknown.",
            id="a kind that nobody handles",
        ),
    ],
)
@pytest.mark.parametrize("slow", [False, True], ids=["quick", "slow"])
async def test_a_task_that_can_never_be_run_is_parked(
    database: Database, kind: str, body: str, error: str, *, slow: bool
) -> None:
    register = queue.handles_slowly if slow else queue.handles

    @register("test.note")
    async def never(_: object, _body: Body) -> None:
        pytest.fail("It was run.")

    async with database.transaction() as conn:
        await queue.add(conn, queue.NewTask(kind=kind, body=body, key="poison"))
        await conn.execute("UPDATE tasks SET slow = $1", slow)
    async with running_workers(database, max_attempts=1):
        await wait_until_all_ended(database)

    assert [(task.id, task.error) for task in await parked_tasks(database)] == [("poison", error)]


async def test_what_hangs_in_a_transaction_is_cut_off(database: Database) -> None:
    @queue.handles("test.hang")
    async def hang(conn: Connection, _body: Body) -> None:
        await note(conn, "undone")
        await asyncio.Event().wait()

    register_note_handler()
    async with running_workers(database, max_attempts=1, lease_seconds=1):
        await add_tasks(database, "test.hang", "a")
        await add_tasks(database, "test.note", "b")
        await wait_until_all_ended(database)

    assert [(task.id, task.error) for task in await parked_tasks(database)] == [
        ("a", "TimeoutError: ")
    ]
    assert await notes_of(database) == ["b"]


async def break_the_transaction(conn: Connection) -> None:
    if conn.hub.settings.database.url is None:
        await conn.execute("INSERT OR ROLLBACK INTO facts (name, value) VALUES ('x', NULL)")
    else:
        await conn.fetch_value("SELECT pg_terminate_backend(pg_backend_pid())")


async def test_a_task_that_breaks_its_transaction_is_parked_and_its_neighbours_are_not(
    database: Database, short_waits: None
) -> None:
    attempts: dict[str, int] = {}

    @queue.handles("test.neighbour")
    async def live(conn: Connection, body: Body) -> None:
        name = body["name"]
        attempts[name] = attempts.get(name, 0) + 1
        await note(conn, name)
        if name == "guilty":
            await break_the_transaction(conn)

    await add_tasks(database, "test.neighbour", "a", "b", "guilty", "x", "y")
    async with running_workers(database, max_attempts=4):
        await wait_until_all_ended(database)

    assert await notes_of(database) == ["a", "b", "x", "y"]
    (task,) = await parked_tasks(database)
    assert (task.id, task.attempts) == ("guilty", 4)
    assert task.error.startswith("It broke the transaction it ran in: ")
    # The first batch was undone with the guilty one; after that everybody ran alone.
    assert attempts == {"a": 2, "b": 2, "guilty": 4, "x": 1, "y": 1}
