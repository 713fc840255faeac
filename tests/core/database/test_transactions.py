"""A transaction is kept whole or not at all, whatever happens to the one who runs it."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from hublet.core.database import Connection, Database, UniqueViolation
from hublet.core.database.engine import TransactionEnded
from hublet.core.database.postgresql import PostgresDatabase
from scratch_database import RollBack, note_ids, notes_of, notes_table, write_note


@pytest.fixture(autouse=True)
async def _notes(database: Database) -> AsyncIterator[None]:
    async with notes_table(database):
        yield


async def add(conn: Connection, note_id: str) -> None:
    await conn.execute("INSERT INTO notes (id) VALUES ($1)", note_id)


async def add_both_or_none(conn: Connection, first: str, second: str) -> None:
    async with conn.savepoint():
        await add(conn, first)
        await add(conn, second)


async def add_and_stay(conn: Connection, note_id: str) -> None:
    async with conn.savepoint(), asyncio.timeout(0.05):
        await add(conn, note_id)
        await asyncio.Event().wait()


async def add_pair(database: Database, name: str) -> None:
    async with database.transaction() as conn:
        await add(conn, f"{name}-1")
        await asyncio.sleep(0)
        await add(conn, f"{name}-2")


async def test_what_is_committed_is_seen_by_the_next_reader(database: Database) -> None:
    async with database.transaction() as conn:
        await add(conn, "a")
        assert await note_ids(conn) == ["a"]
        assert await notes_of(database) == []

    assert await notes_of(database) == ["a"]


async def test_an_error_undoes_everything(database: Database) -> None:
    with suppress(RollBack):
        async with database.transaction() as conn:
            await add(conn, "a")
            raise RollBack

    assert await notes_of(database) == []
    await write_note(database, "b")
    assert await notes_of(database) == ["b"]


async def test_a_cancelled_task_leaves_nothing(database: Database) -> None:
    written = asyncio.Event()

    async def write_and_wait() -> None:
        async with database.transaction() as conn:
            await add(conn, "a")
            written.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(write_and_wait())
    await written.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await notes_of(database) == []
    await write_note(database, "b")


async def test_a_connection_that_is_not_used_begins_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse() -> None:
        pytest.fail("Something was begun.")

    with monkeypatch.context() as patched:
        if isinstance(database, PostgresDatabase):
            patched.setattr(database.pool, "acquire", refuse)
        else:
            patched.setattr(database, "begin", refuse)
        async with database.transaction() as conn:
            conn.wake("anybody")
        with suppress(RollBack):
            async with database.transaction():
                raise RollBack


async def test_a_statement_after_the_end_is_refused(database: Database) -> None:
    async with database.transaction() as committed:
        await add(committed, "a")
    with suppress(RollBack):
        async with database.transaction() as undone:
            raise RollBack

    for conn in (committed, undone):
        with pytest.raises(TransactionEnded):
            await add(conn, "b")
    await write_note(database, "c")
    assert await notes_of(database) == ["a", "c"]


async def test_a_savepoint_undoes_only_what_is_inside_it(database: Database) -> None:
    async with database.transaction() as conn:
        await add(conn, "a")
        with suppress(RollBack):
            async with conn.savepoint():
                await add(conn, "b")
                async with conn.savepoint():
                    await add(conn, "c")
                raise RollBack
        async with conn.savepoint():
            await add(conn, "d")
            with suppress(RollBack):
                async with conn.savepoint():
                    await add(conn, "e")
                    raise RollBack
            await add(conn, "f")

    assert await notes_of(database) == ["a", "d", "f"]


async def test_after_a_violation_in_a_savepoint_the_transaction_goes_on(
    database: Database,
) -> None:
    async with database.transaction() as conn:
        await add(conn, "a")
        for _ in range(2):
            with pytest.raises(UniqueViolation):
                await add_both_or_none(conn, "b", "a")
        await add(conn, "c")

    assert await notes_of(database) == ["a", "c"]


async def test_a_savepoint_may_be_the_first_statement(database: Database) -> None:
    async with database.transaction() as conn, conn.savepoint():
        await add(conn, "a")

    assert await notes_of(database) == ["a"]


async def test_what_runs_out_of_time_in_a_savepoint_is_undone(database: Database) -> None:
    async with database.transaction() as conn:
        await add(conn, "a")
        with pytest.raises(TimeoutError):
            await add_and_stay(conn, "b")
        await add(conn, "c")

    assert await notes_of(database) == ["a", "c"]


async def test_many_writers_at_once_all_succeed(database: Database) -> None:
    await write_note(database, "counter")

    async def count() -> None:
        async with database.transaction() as conn:
            await conn.execute("UPDATE notes SET size = coalesce(size, 0) + 1 WHERE id = 'counter'")

    await asyncio.gather(*(count() for _ in range(200)))

    async with database.read() as reader:
        assert await reader.fetch_value("SELECT size FROM notes") == 200


async def test_a_name_is_held_by_one_transaction_at_a_time(database: Database) -> None:
    inside = most = 0

    async def enter() -> None:
        nonlocal inside, most
        async with database.transaction() as conn:
            await conn.lock("door")
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.01)
            inside -= 1

    await asyncio.gather(*(enter() for _ in range(4)))

    assert most == 1


async def test_a_name_that_was_locked_in_what_was_undone_is_locked_again(
    database: Database,
) -> None:
    inside = most = 0

    async def enter() -> None:
        nonlocal inside, most
        async with database.transaction() as conn:
            with suppress(LookupError):
                async with conn.savepoint():
                    await conn.lock("door")
                    raise LookupError
            for _ in range(2):
                await conn.lock("door")
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.01)
            inside -= 1

    await asyncio.gather(*(enter() for _ in range(4)))

    assert most == 1


async def test_cancelled_at_any_moment_a_transaction_is_whole_or_absent(
    database: Database,
) -> None:
    chance = random.Random(7)

    async def write_and_be_cancelled(number: int) -> None:
        task = asyncio.create_task(add_pair(database, f"n{number:03}"))
        await asyncio.sleep(chance.random() * 0.03)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    await asyncio.gather(*(write_and_be_cancelled(number) for number in range(100)))

    # Neither a turn nor a connection was lost on the way.
    await asyncio.gather(*(add_pair(database, f"z{number}") for number in range(8)))
    # A commit that nobody waits for any more may still be on its way.
    async with database.transaction() as conn:
        await conn.lock("afterwards")
    found = await notes_of(database)
    assert {note for note in found if note.startswith("z")} == {
        f"z{number}-{half}" for number in range(8) for half in (1, 2)
    }
    assert len(found) % 2 == 0
    assert all(f"{note[:-1]}{3 - int(note[-1])}" in found for note in found)


async def test_waiting_for_a_turn_can_be_cancelled(database: Database) -> None:
    async with database.transaction() as conn:
        await conn.lock("door")
        await add(conn, "a")

        async def wait_at_the_door() -> None:
            async with database.transaction() as second:
                await second.lock("door")

        tasks = [asyncio.create_task(wait_at_the_door()) for _ in range(3)]
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * 3
    await write_note(database, "b")
    assert await notes_of(database) == ["a", "b"]
