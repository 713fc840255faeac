"""SQLite: what other processes do to the file, and what must not happen on the event loop."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Self

import pytest

from hublet.core.config import Settings
from hublet.core.database import (
    DatabaseUnavailable,
    UniqueViolation,
    open_database,
)
from hublet.core.database.sqlite import SqliteDatabase
from patience import SOON_SECONDS
from scratch_database import hub_of, notes_of, notes_table, write_note

PATIENCE = 0.4


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = Settings()
    return replace(settings, database=replace(settings.database, data_dir=tmp_path))


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[SqliteDatabase]:
    async with open_database(hub_of(settings, busy_timeout_seconds=PATIENCE)) as database:
        assert isinstance(database, SqliteDatabase)
        async with notes_table(database):
            yield database


@contextmanager
def locked(settings: Settings) -> Iterator[None]:
    """Hold the file as another process does that is writing."""
    raw = sqlite3.connect(settings.database.data_dir / "hub.db", isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        raw.execute("ROLLBACK")
        raw.close()


class Ticker:
    """Counts how often the event loop came by while something else was going on."""

    def __init__(self) -> None:
        self.ticks = 0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.01)
            self.ticks += 1


@contextmanager
def slow_commits(database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make a commit take as long as on a disk that is busy."""
    commit = database._commit  # noqa: SLF001 - the disk cannot be made slow

    def wait_and_commit() -> None:
        sleep(0.3)
        commit()

    with monkeypatch.context() as patch:
        patch.setattr(database, "_commit", wait_and_commit)
        yield


async def test_a_writer_waits_for_another_process_and_then_gives_up(
    settings: Settings, database: SqliteDatabase
) -> None:
    async with Ticker() as ticker:
        with locked(settings):
            begun = monotonic()
            with pytest.raises(DatabaseUnavailable) as caught:
                await write_note(database, "a")
            waited = monotonic() - begun

    assert waited >= PATIENCE
    assert caught.value.status == 503
    assert caught.value.reason == "database is locked"
    # A wait inside SQLite would have stopped the clock of everybody else.
    assert ticker.ticks >= 5
    await write_note(database, "b")
    assert await notes_of(database) == ["b"]


async def test_a_writer_that_waited_long_enough_writes(
    settings: Settings, database: SqliteDatabase
) -> None:
    with locked(settings):
        writing = asyncio.create_task(write_note(database, "a"))
        await asyncio.sleep(PATIENCE / 4)
        assert not writing.done()
    await writing

    assert await notes_of(database) == ["a"]


async def test_a_writer_that_is_cancelled_while_it_waits_lets_the_next_one_in(
    settings: Settings, database: SqliteDatabase
) -> None:
    with locked(settings):
        writing = asyncio.create_task(write_note(database, "a"))
        await asyncio.sleep(PATIENCE / 4)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)

    await write_note(database, "b")
    assert await notes_of(database) == ["b"]


async def test_reading_goes_on_while_another_process_writes(
    settings: Settings, database: SqliteDatabase
) -> None:
    await write_note(database, "a")

    with locked(settings):
        await database.check()
        assert await notes_of(database) == ["a"]


async def test_a_transaction_that_never_ends_is_not_waited_for_without_end(
    database: SqliteDatabase,
) -> None:
    async with database.transaction() as conn:
        await conn.execute("INSERT INTO notes (id) VALUES ('a')")
        with pytest.raises(DatabaseUnavailable):
            await write_note(database, "b")

    await write_note(database, "c")
    assert await notes_of(database) == ["a", "c"]


async def test_a_commit_survives_a_power_cut(database: SqliteDatabase) -> None:
    """What the database fixture of other tests leaves out, which need no such promise."""
    [synchronous] = database.writer.execute("PRAGMA synchronous").fetchone()
    # FULL.
    assert synchronous == 2


async def test_the_commit_runs_in_another_thread(database: SqliteDatabase) -> None:
    threads: dict[str, int] = {}
    database.writer.set_trace_callback(
        lambda statement: threads.setdefault(statement.split()[0], threading.get_ident())
    )

    await write_note(database, "a")

    database.writer.set_trace_callback(None)
    assert threads.keys() == {"BEGIN", "INSERT", "COMMIT"}
    assert threads["BEGIN"] == threads["INSERT"] == threading.get_ident()
    assert threads["COMMIT"] != threading.get_ident()


async def test_the_event_loop_runs_on_during_a_commit(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with slow_commits(database, monkeypatch):
        async with Ticker() as ticker:
            await write_note(database, "a")

    assert ticker.ticks >= 5


async def test_a_commit_goes_on_when_its_caller_is_cancelled(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def write() -> None:
        async with database.transaction() as conn:
            await conn.execute("INSERT INTO notes (id) VALUES ('a')")
            conn.wake("notes")

    with slow_commits(database, monkeypatch), database.subscribe("notes") as bell:
        writing = asyncio.create_task(write())
        await asyncio.sleep(0.1)
        writing.cancel()
        outcome = await asyncio.gather(writing, return_exceptions=True)

        # The next writer gets the connection only when the commit is through.
        await write_note(database, "b")

        assert isinstance(outcome[0], asyncio.CancelledError)
        assert await notes_of(database) == ["a", "b"]
        assert await bell.wait(timeout=0)


# Counts to some millions, which takes a noticeable part of a second.
LONG = """
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < $1)
SELECT count(*) AS count FROM numbers
"""


async def test_the_event_loop_runs_on_during_work_in_bulk(database: SqliteDatabase) -> None:
    async with Ticker() as ticker, database.transaction() as conn:
        await conn.execute("INSERT INTO notes (id) VALUES ('a')")
        with conn.in_bulk():
            counted = await conn.fetch_value(LONG, 2_000_000)
            changed = await conn.execute("UPDATE notes SET id = 'b'")

    assert (counted, changed) == (2_000_000, 1)
    assert ticker.ticks >= 5
    assert await notes_of(database) == ["b"]


async def test_work_in_bulk_that_is_cancelled_ends_at_once_and_leaves_nothing(
    database: SqliteDatabase,
) -> None:
    async def write() -> None:
        async with database.transaction() as conn:
            await conn.execute("INSERT INTO notes (id) VALUES ('a')")
            with conn.in_bulk():
                await conn.fetch_value(LONG, 2_000_000_000)

    writing = asyncio.create_task(write())
    await asyncio.sleep(0.2)
    writing.cancel()
    async with asyncio.timeout(SOON_SECONDS):
        outcome = await asyncio.gather(writing, return_exceptions=True)
    await write_note(database, "b")

    assert isinstance(outcome[0], asyncio.CancelledError)
    assert await notes_of(database) == ["b"]


async def test_a_mistake_in_bulk_is_told_like_any_other(database: SqliteDatabase) -> None:
    async with database.transaction() as conn:
        with conn.in_bulk(), pytest.raises(UniqueViolation):
            await conn.execute("INSERT INTO notes (id) VALUES ('a'), ('a')")
