"""Who waits for a commit is woken by it: in this process, and in others on the same database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from hublet.core.config import Settings
from hublet.core.database import Database, open_database
from hublet.core.database import sqlite as sqlite_module
from hublet.core.database.sqlite import SqliteDatabase
from patience import SOON_SECONDS
from scratch_database import RollBack, hub_of, wait_until_listening


@pytest.fixture
async def other(settings: Settings, database: Database) -> AsyncIterator[Database]:
    """The same database as another process opens it."""
    async with open_database(hub_of(settings)) as other:
        await wait_until_listening(database)
        await wait_until_listening(other)
        yield other


async def wake(database: Database, channel: str) -> None:
    async with database.transaction() as conn:
        await conn.execute("INSERT INTO facts (name, value) VALUES ($1, '')", channel)
        conn.wake(channel)


async def test_a_wake_comes_only_with_the_commit(database: Database) -> None:
    await wait_until_listening(database)
    with database.subscribe("notes") as bell, database.subscribe("others") as others:
        async with database.transaction() as conn:
            await conn.execute("INSERT INTO facts (name, value) VALUES ('a', '')")
            conn.wake("notes")
            assert not await bell.wait(timeout=0.05)

        assert await bell.wait(timeout=0)
        assert not await others.wait(timeout=0.05)


async def test_what_is_rolled_back_wakes_nobody(database: Database, other: Database) -> None:
    with database.subscribe("notes") as here, other.subscribe("notes") as there:
        with suppress(RollBack):
            async with database.transaction() as conn:
                await conn.execute("INSERT INTO facts (name, value) VALUES ('a', '')")
                conn.wake("notes")
                raise RollBack

        assert not await here.wait(timeout=0.5)
        assert not await there.wait(timeout=0)


async def test_one_wake_is_told_once_to_everybody(database: Database) -> None:
    await wait_until_listening(database)
    with database.subscribe("notes") as first, database.subscribe("notes") as second:
        await wake(database, "notes")

        assert await first.wait(timeout=0)
        assert await second.wait(timeout=0)


async def test_a_wake_before_the_waiting_is_not_lost(database: Database) -> None:
    with database.subscribe("notes") as bell:
        await wake(database, "notes")
        await asyncio.sleep(0.05)

        assert await bell.wait(timeout=0)


async def test_who_left_is_not_woken(database: Database) -> None:
    await wait_until_listening(database)
    with database.subscribe("notes") as bell:
        pass

    await wake(database, "notes")

    assert not await bell.wait(timeout=0.05)


async def test_another_process_is_woken_by_the_commit(database: Database, other: Database) -> None:
    with other.subscribe("notes") as bell:
        await wake(database, "notes")

        assert await bell.wait(timeout=SOON_SECONDS)


async def test_a_channel_may_have_any_name(database: Database, other: Database) -> None:
    name = "it's; DROP TABLE facts --"
    with other.subscribe(name) as bell:
        await wake(database, name)

        assert await bell.wait(timeout=SOON_SECONDS)


async def test_a_busy_process_hears_of_the_others_too(
    database: Database, other: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite it has hardly a moment without a transaction, to look around in."""
    monkeypatch.setattr(sqlite_module, "_WATCH_SECONDS", 0.02)

    async def write_without_a_pause() -> None:
        while isinstance(database, SqliteDatabase):
            async with database._turn:  # noqa: SLF001 - a transaction would keep the other out
                await asyncio.sleep(0.02)

    with database.subscribe("notes") as bell:
        writers = [asyncio.create_task(write_without_a_pause()) for _ in range(3)]
        await asyncio.sleep(0.05)
        await wake(other, "notes")

        assert await bell.wait(timeout=SOON_SECONDS)
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)
