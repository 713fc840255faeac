"""PostgreSQL goes away and comes back: requests fail, recover, and leave nothing half-written."""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import asyncpg
import pytest

from hublet.core.config import Settings
from hublet.core.database import (
    Connection,
    Database,
    DatabaseUnavailable,
    open_database,
    postgresql_notices,
    postgresql_pool,
)
from hublet.core.database.postgresql import PostgresDatabase
from patience import SOON_SECONDS
from postgresql_server import PostgresqlServer
from scratch_database import (
    hub_of,
    notes_of,
    notes_table,
    wait_until,
    wait_until_listening,
    write_note,
)

PATIENCE = 1.0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresqlServer]:
    with tempfile.TemporaryDirectory(prefix="hublet-pg-", ignore_cleanup_errors=True) as folder:
        server = PostgresqlServer(Path(folder))
        yield server
        server.remove()


@pytest.fixture
async def database(server: PostgresqlServer) -> AsyncIterator[Database]:
    hub = hub_of(Settings(), url=server.url, busy_timeout_seconds=PATIENCE, pool_size=3)
    async with open_database(hub) as database, notes_table(database):
        yield database


@pytest.fixture
async def root(server: PostgresqlServer, database: Database) -> AsyncIterator[Any]:
    """A session of the operator's, beside those of the hub."""
    raw = await asyncpg.connect(server.url)
    yield raw
    await raw.close()


async def terminate_all(root: Any) -> None:
    await root.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )


async def add(conn: Connection, note_id: str) -> None:
    await conn.execute("INSERT INTO notes (id) VALUES ($1)", note_id)


async def test_a_server_that_went_away_and_came_back_is_used_again(
    server: PostgresqlServer, database: Database
) -> None:
    await write_note(database, "a")
    server.crash()
    try:
        for _ in range(2):
            with pytest.raises(DatabaseUnavailable):
                await write_note(database, "b")
            with pytest.raises(DatabaseUnavailable):
                await database.check()
    finally:
        server.start()

    await database.check()
    await write_note(database, "c")
    assert await notes_of(database) == ["a", "c"]


async def test_what_a_crash_interrupts_is_not_written(
    server: PostgresqlServer, database: Database
) -> None:
    async def write_on_both_sides_of_a_crash() -> None:
        async with database.transaction() as conn:
            await add(conn, "a")
            server.crash()
            await add(conn, "b")

    try:
        with pytest.raises(DatabaseUnavailable):
            await write_on_both_sides_of_a_crash()
    finally:
        server.start()

    assert await notes_of(database) == []


async def test_notices_are_heard_again_after_a_crash(
    server: PostgresqlServer, database: Database
) -> None:
    await wait_until_listening(database)
    with database.subscribe("notes") as bell:
        server.crash()
        server.start()

        # Whatever was missed in between is looked for once.
        assert await bell.wait(timeout=SOON_SECONDS)
        await wait_until_listening(database)


async def test_who_listens_hears_again_when_the_session_was_ended(
    database: Database, root: Any
) -> None:
    await wait_until_listening(database)

    await terminate_all(root)

    await wait_until_listening(database)


async def test_sessions_that_were_ended_while_idle_are_replaced(
    database: Database, root: Any
) -> None:
    await asyncio.gather(*(write_note(database, f"n{number}") for number in range(3)))

    await terminate_all(root)
    await asyncio.sleep(0.1)

    await write_note(database, "z")
    assert await notes_of(database) == ["n0", "n1", "n2", "z"]


async def test_a_session_that_is_ended_in_a_transaction_keeps_nothing(
    database: Database, root: Any
) -> None:
    async def lose_the_session(*, then: str | None) -> None:
        async with database.transaction() as conn:
            await add(conn, "a")
            conn.wake("notes")
            await terminate_all(root)
            await asyncio.sleep(0.05)
            if then is not None:
                await add(conn, then)

    with pytest.raises(DatabaseUnavailable):
        await lose_the_session(then="b")
    with pytest.raises(DatabaseUnavailable):
        await lose_the_session(then=None)

    assert await notes_of(database) == []
    await asyncio.gather(*(write_note(database, f"n{number}") for number in range(6)))


async def test_a_session_that_is_ended_in_a_savepoint_does_not_hide_the_error(
    database: Database, root: Any
) -> None:
    async def fail_in_a_savepoint() -> None:
        async with database.transaction() as conn, conn.savepoint():
            await add(conn, "a")
            await terminate_all(root)
            await asyncio.sleep(0.05)
            raise ValueError("no")

    async def carry_on_regardless() -> None:
        async with database.transaction() as conn:
            await add(conn, "a")
            with pytest.raises(DatabaseUnavailable):
                await _lose_in_a_savepoint(conn, root)
            with pytest.raises(DatabaseUnavailable):
                await add(conn, "c")

    with pytest.raises(ValueError, match="no"):
        await fail_in_a_savepoint()
    with pytest.raises(DatabaseUnavailable):
        await carry_on_regardless()

    assert await notes_of(database) == []


async def _lose_in_a_savepoint(conn: Connection, root: Any) -> None:
    async with conn.savepoint():
        await terminate_all(root)
        await asyncio.sleep(0.05)
        await add(conn, "b")


async def test_a_transaction_that_could_not_begin_does_not_write_without_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = asyncpg.Connection.execute

    async def fail_to_begin(self: Any, statement: str, *values: Any, **more: Any) -> str:
        if statement.startswith("BEGIN"):
            raise asyncpg.CannotConnectNowError("not yet")
        return str(await execute(self, statement, *values, **more))

    async def carry_on_regardless() -> None:
        async with database.transaction() as conn:
            for note_id in ("a", "b"):
                with pytest.raises(DatabaseUnavailable):
                    await add(conn, note_id)

    with monkeypatch.context() as patch:
        patch.setattr(asyncpg.Connection, "execute", fail_to_begin)
        with pytest.raises(DatabaseUnavailable):
            await carry_on_regardless()

    assert await notes_of(database) == []
    await write_note(database, "c")


async def test_a_failed_statement_without_a_savepoint_is_not_committed_in_silence(
    database: Database,
) -> None:
    async def ignore_a_failure() -> None:
        async with database.transaction() as conn:
            await add(conn, "a")
            with pytest.raises(asyncpg.UndefinedColumnError):
                await conn.execute("UPDATE notes SET nothing = 1")

    with pytest.raises(RuntimeError, match="savepoint"):
        await ignore_a_failure()

    assert await notes_of(database) == []
    await write_note(database, "b")


async def test_nobody_waits_for_a_row_without_end(database: Database, root: Any) -> None:
    await write_note(database, "a")

    async with root.transaction():
        await root.execute("UPDATE notes SET size = 1")
        begun = monotonic()
        async with database.transaction() as conn:
            await add(conn, "b")
            with pytest.raises(DatabaseUnavailable):
                await _touch_all(conn)
            await add(conn, "c")
        assert monotonic() - begun >= PATIENCE

    assert await notes_of(database) == ["a", "b", "c"]


async def _touch_all(conn: Connection) -> None:
    async with conn.savepoint():
        await conn.execute("UPDATE notes SET size = 2")


async def test_nobody_waits_for_a_free_session_without_end(database: Database) -> None:
    async with database.read() as first, database.read() as second, database.read() as third:
        for reader in (first, second, third):
            await reader.fetch_value("SELECT 1")
        with pytest.raises(DatabaseUnavailable):
            await write_note(database, "a")

    await write_note(database, "b")
    assert await notes_of(database) == ["b"]


async def test_whoever_waits_for_a_session_gets_the_next_that_is_free(database: Database) -> None:
    async def read() -> int:
        async with database.read() as conn:
            await conn.fetch_value("SELECT pg_sleep(0.01)::text")
            return int(await conn.fetch_value("SELECT pg_backend_pid()"))

    async with asyncio.timeout(SOON_SECONDS):
        pids = await asyncio.gather(*(read() for _ in range(30)))

    assert len(set(pids)) == 3


async def test_a_session_that_was_used_lies_ready_and_goes_back_after_a_while(
    server: PostgresqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_pool, "_FREE_SECONDS", 0.3)
    async with open_database(hub_of(Settings(), url=server.url)) as database:
        assert isinstance(database, PostgresDatabase)
        pool = database.pool._pool  # noqa: SLF001 - what asyncpg thinks is lent

        async def is_all_idle() -> bool:
            return bool(pool.get_idle_size() == pool.get_size())

        for _ in range(3):
            await database.check()
            assert pool.get_size() - pool.get_idle_size() == 1

        await wait_until(is_all_idle)
        await database.check()


async def test_a_server_that_falls_silent_is_an_absent_one(
    server: PostgresqlServer, monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    monkeypatch.setattr(postgresql_pool, "_SILENCE_SECONDS", 0.5)
    hub = hub_of(Settings(), url=server.url, busy_timeout_seconds=PATIENCE)
    async with open_database(hub) as impatient:
        async with impatient.read() as conn:
            pid = await conn.fetch_value("SELECT pg_backend_pid()")
        os.kill(pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(SOON_SECONDS):
                with pytest.raises(DatabaseUnavailable):
                    await write_note(impatient, "a")
        finally:
            os.kill(pid, signal.SIGCONT)

        await wait_until(lambda: _can_write(impatient, "b"))
    assert await notes_of(database) == ["b"]


async def test_a_listening_session_that_falls_silent_is_replaced(
    server: PostgresqlServer, monkeypatch: pytest.MonkeyPatch, root: Any
) -> None:
    monkeypatch.setattr(postgresql_notices, "_SILENCE_SECONDS", 0.3)
    hub = hub_of(Settings(), url=server.url, busy_timeout_seconds=PATIENCE)
    async with open_database(hub) as impatient:
        await wait_until_listening(impatient)
        pids = await root.fetch(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'hublet notices'"
        )
        for row in pids:
            os.kill(row["pid"], signal.SIGSTOP)
        try:
            await wait_until_listening(impatient)
        finally:
            for row in pids:
                os.kill(row["pid"], signal.SIGCONT)

    assert pids


async def _can_write(database: Database, note_id: str) -> bool:
    try:
        await write_note(database, note_id)
    except DatabaseUnavailable:
        return False
    return True


async def test_a_server_that_is_not_there_cannot_be_opened(tmp_path: Path) -> None:
    url = f"postgresql://postgres@/postgres?host={tmp_path}"

    with pytest.raises(DatabaseUnavailable):
        await open_database(hub_of(Settings(), url=url)).__aenter__()


async def test_a_read_that_is_given_up_half_way_leaves_nothing_to_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = asyncpg.Connection._get_statement  # noqa: SLF001 - between the halves of a statement

    async def prepare_and_be_cancelled(*args: Any, **options: Any) -> Any:
        prepared = await prepare(*args, **options)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return prepared

    async def read() -> None:
        async with database.read() as conn:
            await conn.fetch_all("SELECT id FROM notes WHERE id <> 'never asked for'")

    with monkeypatch.context() as patched:
        patched.setattr(asyncpg.Connection, "_get_statement", prepare_and_be_cancelled)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(read())

    await write_note(database, "1")
    assert await notes_of(database) == ["1"]


@pytest.mark.parametrize(
    ("end", "bulk_end"),
    [
        pytest.param("($1, $2)", "SELECT given.v1, given.v2", id="values alone"),
        pytest.param("($2, f($1, 0))", "SELECT given.v2, f(given.v1, 0)", id="expressions"),
        pytest.param(
            "($1, $2) ON CONFLICT (a, b) DO NOTHING", "SELECT given.v1, given.v2", id="left out"
        ),
        pytest.param("($1, $2) ON CONFLICT (a) DO UPDATE SET b = f(1)", None, id="changed"),
        pytest.param("($1, $2), ($2, $1)", None, id="two rows"),
        pytest.param("($1, $2) RETURNING f(a)", None, id="with an answer"),
    ],
)
def test_what_adds_one_row_is_written_for_many(end: str, bulk_end: str | None) -> None:
    bulk = postgresql_pool.bulk_insert(f"INSERT INTO t (a, b) VALUES {end}", ["text", "int8"])

    if bulk_end is None:
        assert bulk is None
    else:
        conflict = "ON CONFLICT (a, b) DO NOTHING" if "CONFLICT" in end else ""
        lists = "unnest($1::text[], $2::int8[]) AS given (v1, v2)"
        assert bulk == f"INSERT INTO t (a, b) {bulk_end} FROM {lists} {conflict}"


async def test_many_rows_are_added_with_one_statement(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    execute = asyncpg.Connection.execute

    async def note(self: Any, sql: str, *values: Any, **options: Any) -> Any:
        sent.append(sql)
        return await execute(self, sql, *values, **options)

    monkeypatch.setattr(asyncpg.Connection, "execute", note)
    monkeypatch.delattr(asyncpg.Connection, "executemany")
    async with database.transaction() as conn:
        await conn.execute_many(
            "INSERT INTO notes (id, size) VALUES ($1, $2)", [(f"n{i}", i) for i in range(200)]
        )

    assert len([each for each in sent if "INSERT" in each]) == 1
    assert len(await notes_of(database)) == 200
