"""SQLite gives up a transaction, a file or a disk: nothing is half-written, and it is said."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from hublet.core.batching import GroupCommit
from hublet.core.config import Settings
from hublet.core.database import (
    Connection,
    Database,
    DatabaseUnavailable,
    UniqueViolation,
    open_database,
)
from hublet.core.database.newest_schema import statements_of
from hublet.core.database.sqlite import SqliteDatabase
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


async def test_a_commit_that_fails_keeps_nothing_and_frees_the_turn(
    database: SqliteDatabase,
) -> None:
    async with database.transaction() as conn:
        await conn.apply(
            "CREATE TABLE replies (note TEXT REFERENCES notes (id) DEFERRABLE INITIALLY DEFERRED);"
        )

    with database.subscribe("notes") as bell:
        with pytest.raises(sqlite3.IntegrityError):
            await _reply_to_nothing(database)
        assert not await bell.wait(timeout=0)

    await write_note(database, "b")
    assert await notes_of(database) == ["b"]


async def _reply_to_nothing(database: Database) -> None:
    async with database.transaction() as conn:
        await conn.execute("INSERT INTO notes (id) VALUES ('a')")
        await conn.execute("INSERT INTO replies (note) VALUES ('x')")
        conn.wake("notes")


# SQLite does the same by itself when the disk is full or fails.
ROLL_BACK_BY_ITSELF = "INSERT OR ROLLBACK INTO notes (id) VALUES ('a')"


async def test_after_sqlite_rolled_back_by_itself_nothing_more_is_written(
    database: SqliteDatabase,
) -> None:
    await write_note(database, "a")

    async def carry_on_regardless() -> None:
        async with database.transaction() as conn:
            await conn.execute("INSERT INTO notes (id) VALUES ('b')")
            with pytest.raises(Exception, match="UNIQUE"):
                await conn.execute(ROLL_BACK_BY_ITSELF)
            with pytest.raises(DatabaseUnavailable):
                await conn.execute("INSERT INTO notes (id) VALUES ('c')")

    with pytest.raises(DatabaseUnavailable):
        await carry_on_regardless()
    assert await notes_of(database) == ["a"]
    await write_note(database, "d")


async def test_a_savepoint_that_is_gone_does_not_hide_the_error(database: SqliteDatabase) -> None:
    await write_note(database, "a")

    async def roll_back_inside_a_savepoint() -> None:
        async with database.transaction() as conn, conn.savepoint():
            await conn.execute(ROLL_BACK_BY_ITSELF)

    with pytest.raises(UniqueViolation):
        await roll_back_inside_a_savepoint()
    await write_note(database, "b")


async def test_a_member_of_a_group_that_loses_the_transaction_loses_it_for_all(
    database: SqliteDatabase,
) -> None:
    await write_note(database, "a")
    group = GroupCommit(database)

    async def write(conn: Connection, statement: str) -> int:
        return await conn.execute(statement)

    outcomes = await asyncio.gather(
        group.run(lambda conn: write(conn, "INSERT INTO notes (id) VALUES ('b')")),
        group.run(lambda conn: write(conn, ROLL_BACK_BY_ITSELF)),
        group.run(lambda conn: write(conn, "INSERT INTO notes (id) VALUES ('c')")),
        return_exceptions=True,
    )

    assert [type(outcome) for outcome in outcomes] == [DatabaseUnavailable] * 3
    assert await notes_of(database) == ["a"]


async def test_a_full_disk_is_an_absent_database(database: SqliteDatabase) -> None:
    pages = database.writer.execute("PRAGMA page_count").fetchone()[0]
    database.writer.execute(f"PRAGMA max_page_count = {pages + 2}")

    async def write_much() -> None:
        async with database.transaction() as conn:
            await conn.execute("INSERT INTO notes (id, body) VALUES ('a', $1)", "x" * 100_000)

    with pytest.raises(DatabaseUnavailable) as caught:
        await write_much()

    assert caught.value.reason == "database or disk is full"
    assert await notes_of(database) == []
    await write_note(database, "b")


async def test_closing_does_not_wait_for_a_transaction_that_never_ends(settings: Settings) -> None:
    async def write_and_stay(database: Database) -> None:
        async with database.transaction() as conn:
            await conn.apply("CREATE TABLE drafts (id TEXT);")
            await asyncio.Event().wait()

    async with open_database(hub_of(settings, busy_timeout_seconds=PATIENCE)) as database:
        staying = asyncio.create_task(write_and_stay(database))
        await asyncio.sleep(0.05)
    staying.cancel()
    outcome = await asyncio.gather(staying, return_exceptions=True)

    assert isinstance(outcome[0], asyncio.CancelledError)
    with closing(sqlite3.connect(settings.database.data_dir / "hub.db")) as raw:
        assert raw.execute("SELECT name FROM sqlite_master").fetchall() == []


async def test_a_closed_database_is_an_absent_one(settings: Settings) -> None:
    async with open_database(hub_of(settings)) as database:
        pass

    with pytest.raises(DatabaseUnavailable):
        await database.check()
    with pytest.raises(DatabaseUnavailable):
        await write_note(database, "a")


async def test_a_file_that_cannot_be_opened_is_an_absent_database(settings: Settings) -> None:
    missing = settings.database.data_dir / "missing"

    with pytest.raises(DatabaseUnavailable) as caught:
        await open_database(hub_of(settings, data_dir=missing)).__aenter__()

    assert caught.value.reason == "unable to open database file"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("-- A word.\n\n", [], id="only a comment"),
        pytest.param("SELECT 1;\nSELECT 2;", ["SELECT 1;", "SELECT 2;"], id="two statements"),
        pytest.param("SELECT 1", ["SELECT 1"], id="the last one needs no semicolon"),
        pytest.param(
            "-- Why.\nSELECT\n  -- Because; really.\n  ';';",
            ["SELECT\n  -- Because; really.\n  ';';"],
            id="semicolons in comments and texts end nothing",
        ),
        pytest.param(
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  SELECT 1;\n  SELECT 2;\nEND;\nSELECT 3;",
            [
                "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  SELECT 1;\n  SELECT 2;\nEND;",
                "SELECT 3;",
            ],
            id="a trigger is one statement",
        ),
    ],
)
def test_a_script_is_split_into_its_statements(script: str, expected: list[str]) -> None:
    assert list(statements_of(script)) == expected
