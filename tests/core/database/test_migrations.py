"""A database is brought to the schema of this version once, whole, and never silently wrong."""

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path

import pytest

from hublet.core.config import load
from hublet.core.database import Database, migrations, open_database
from hublet.core.database.migrations import (
    Migration,
    SchemaError,
    known_migrations,
    migrate,
    pending_migrations,
)
from hublet.core.database.newest_schema import newest_schema, written_schema
from processes import Place
from scratch_database import hub_of

FIRST = Migration(number=1, name="first", script="CREATE TABLE one (id TEXT);")
SECOND = Migration(
    number=2,
    name="second",
    script="-- Why.\nCREATE TABLE two (id TEXT);\nINSERT INTO two VALUES ('a');",
)
BROKEN = Migration(
    number=2, name="broken", script="CREATE TABLE two (id TEXT);\nINSERT INTO missing VALUES (1);"
)


@pytest.fixture
async def empty(place: Place) -> AsyncIterator[Database]:
    """A database without even the table of migrations."""
    place.data_dir.mkdir()
    async with open_database(hub_of(place.settings)) as database:
        yield database


async def applied(database: Database) -> list[tuple[int, str, str]]:
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT number, name, digest FROM migrations ORDER BY number")
    return [tuple(row) for row in rows]


async def tables(database: Database) -> set[str]:
    catalogue = {
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table'",
        "postgresql": "SELECT table_name FROM information_schema.tables "
        "WHERE table_schema = 'public'",
    }
    async with database.read() as conn:
        return {row[0] for row in await conn.fetch_all(catalogue[database.kind])}


async def test_what_is_missing_is_applied_once_and_recorded(empty: Database) -> None:
    assert await migrate(empty, [FIRST]) == ["first"]
    assert await migrate(empty, [FIRST, SECOND]) == ["second"]
    assert await migrate(empty, [FIRST, SECOND]) == []

    assert await applied(empty) == [(1, "first", FIRST.digest), (2, "second", SECOND.digest)]
    assert await tables(empty) == {"migrations", "one", "two"}


async def test_a_migration_of_nothing_but_comments_is_recorded(empty: Database) -> None:
    reserved = Migration(number=1, name="reserved", script="-- Of a feature to come.\n")

    assert await migrate(empty, [reserved]) == ["reserved"]


async def test_a_migration_that_fails_leaves_nothing_and_can_be_repeated(empty: Database) -> None:
    with pytest.raises(Exception, match="missing"):
        await migrate(empty, [FIRST, BROKEN])

    assert await applied(empty) == [(1, "first", FIRST.digest)]
    assert await tables(empty) == {"migrations", "one"}
    assert await migrate(empty, [FIRST, SECOND]) == ["second"]


async def test_a_file_that_was_changed_afterwards_is_refused(empty: Database) -> None:
    await migrate(empty, [FIRST])
    changed = Migration(number=1, name="first", script=FIRST.script + "\n-- Oops.")

    with pytest.raises(SchemaError) as caught:
        await migrate(empty, [changed, SECOND])

    assert str(caught.value) == (
        "Migration 0001 (first) was changed after it had been applied to this database: "
        "restore the file as it was released."
    )
    assert await tables(empty) == {"migrations", "one"}


async def test_a_database_of_a_newer_version_is_refused(empty: Database) -> None:
    await migrate(empty, [FIRST, SECOND])

    with pytest.raises(SchemaError) as caught:
        await migrate(empty, [FIRST])

    assert str(caught.value) == (
        "The database was written by a newer Hublet (schema 2, this version knows 1): "
        "install that version, or point to another database."
    )


async def test_those_who_start_at_the_same_time_wait_for_each_other(
    place: Place, empty: Database
) -> None:
    async with open_database(hub_of(place.settings)) as other:
        names = await asyncio.gather(
            *(migrate(each, [FIRST, SECOND]) for each in (empty, other, empty, other))
        )

    assert sorted(name for some in names for name in some) == ["first", "second"]
    assert await applied(empty) == [(1, "first", FIRST.digest), (2, "second", SECOND.digest)]


START = """
import asyncio, sys
from hublet.core.config import load
from hublet.core.database import open_database
from hublet.core.database.migrations import migrate
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing

async def start():
    url = sys.argv[2] or None
    settings = load({"database.data_dir": sys.argv[1], "database.url": url}, environ={})
    async with open_database(Hub(settings=settings, keys=KeyRing.new())) as database:
        print(len(await migrate(database)))

asyncio.run(start())
"""


async def test_processes_that_start_at_the_same_time_apply_each_migration_once(
    place: Place,
) -> None:
    place.data_dir.mkdir()
    arguments = [sys.executable, "-c", START, str(place.data_dir), place.database_url or ""]
    processes = [
        subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220 - together
        for _ in range(3)
    ]
    counts = [int(process.communicate()[0]) for process in processes]

    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sum(counts) == len(known_migrations())


async def test_the_schema_of_this_version_is_complete(empty: Database) -> None:
    names = [migration.name for migration in known_migrations()]

    assert await pending_migrations(empty) == names
    assert await migrate(empty) == names
    assert await pending_migrations(empty) == []


def test_migration_files_are_numbered_without_gaps() -> None:
    files = sorted(
        entry.name
        for entry in resources.files("hublet.migrations").iterdir()
        if entry.name.endswith(".sql")
    )

    assert [int(name[:4]) for name in files] == list(range(1, len(files) + 1))
    assert [name for name in files if not re.fullmatch(r"\d{4}_[a-z0-9_]+\.sql", name)] == []
    assert [migration.number for migration in known_migrations()] == [
        int(name[:4]) for name in files
    ]


def test_every_migration_opens_with_a_sentence() -> None:
    opening = re.compile(r"-- .+\.\n", re.MULTILINE)

    assert [m.name for m in known_migrations() if not opening.match(m.script)] == []


async def schema_of(database: Database) -> set[tuple[str, ...]]:
    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master"
        )
    return {tuple(row) for row in rows}


async def rows_of(database: Database) -> dict[str, int]:
    async with database.read() as conn:
        return {
            name: await conn.fetch_value(f'SELECT count(*) FROM "{name}"')
            for name in await tables(database)
        }


async def test_a_new_sqlite_database_is_what_all_migrations_make(
    empty: Database, tmp_path: Path
) -> None:
    if empty.kind != "sqlite":
        pytest.skip("PostgreSQL begins with its migrations.")
    (tmp_path / "other").mkdir()
    settings = load({"database.data_dir": tmp_path / "other"}, environ={})
    async with open_database(hub_of(settings)) as other:
        await migrate(other, known_migrations())
        await migrate(empty)

        assert await schema_of(empty) == await schema_of(other), "run make schema"
        assert await rows_of(empty) == await rows_of(other), "a migration adds rows: write them too"
        assert await applied(empty) == await applied(other)


def test_the_script_of_a_new_database_belongs_to_these_migrations() -> None:
    scripts = [migration.script for migration in known_migrations()]

    assert newest_schema(scripts) == written_schema(scripts), "run make schema"
    assert newest_schema([*scripts, "CREATE TABLE more (id TEXT);"]) is None


async def test_without_a_script_for_them_a_new_database_begins_with_its_migrations(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "newest_schema", lambda _: None)

    assert await migrate(empty) == [migration.name for migration in known_migrations()]
    assert await pending_migrations(empty) == []


async def test_tables_of_somebody_else_are_not_taken_for_an_empty_database(empty: Database) -> None:
    async with empty.transaction() as conn:
        await conn.execute("CREATE TABLE facts (mine TEXT)")

    with pytest.raises(Exception, match="facts"):
        await migrate(empty)
    assert "repos" not in await tables(empty)
