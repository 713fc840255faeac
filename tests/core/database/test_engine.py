"""What a statement does is the same on both engines."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hublet.core.database import (
    Database,
    DatabaseUnavailable,
    UniqueViolation,
)
from scratch_database import note_ids, notes_of, notes_table, write_note

INSERT = "INSERT INTO notes (id, body, size, raw, seen) VALUES ($1, $2, $3, $4, $5)"


@pytest.fixture(autouse=True)
async def _notes(database: Database) -> AsyncIterator[None]:
    async with notes_table(database):
        yield


async def numbered(database: Database, count: int) -> None:
    async with database.transaction() as conn:
        await conn.execute_many(
            "INSERT INTO notes (id, size) VALUES ($1, $2)", [(f"n{i:04}", i) for i in range(count)]
        )


@pytest.mark.parametrize(
    ("column", "value"),
    [
        pytest.param("body", None, id="nothing"),
        pytest.param("body", "", id="an empty text, which is not nothing"),
        pytest.param("body", "Ünïcödé 🤗 \u200b\n\t'\"\\ $1 ?1 %s", id="text of every kind"),
        pytest.param("body", "x" * 1_000_000, id="a long text"),
        pytest.param("size", 2**63 - 1, id="the largest integer"),
        pytest.param("size", -(2**63), id="the smallest integer"),
        pytest.param("size", 0, id="zero"),
        pytest.param("raw", bytes(range(256)), id="every byte"),
        pytest.param("raw", b"", id="no bytes"),
        pytest.param("seen", True, id="true"),
        pytest.param("seen", False, id="false"),
    ],
)
async def test_a_value_comes_back_as_it_was_written(
    database: Database, column: str, value: Any
) -> None:
    async with database.transaction() as conn:
        await conn.execute(f"INSERT INTO notes (id, {column}) VALUES ($1, $2)", "a", value)

    async with database.read() as conn:
        assert await conn.fetch_value(f"SELECT {column} FROM notes") == value


async def test_a_row_is_read_by_name_by_position_and_as_a_whole(database: Database) -> None:
    async with database.transaction() as conn:
        await conn.execute(INSERT, "a", "hello", 7, b"\x00", True)
        row = await conn.fetch_one("SELECT id, body, size, raw, seen FROM notes")

    assert row is not None
    assert (row["id"], row[1], row["size"]) == ("a", "hello", 7)
    assert tuple(row) == ("a", "hello", 7, b"\x00", True)
    assert len(row) == 5


async def test_text_is_ordered_byte_by_byte(database: Database) -> None:
    for note_id in ("b", "a", "B", "ä", "Z"):
        await write_note(database, note_id)

    assert await notes_of(database) == ["B", "Z", "a", "b", "ä"]


async def test_a_parameter_may_come_twice_and_in_any_order(database: Database) -> None:
    async with database.transaction() as conn:
        await conn.execute("INSERT INTO notes (size, body, id) VALUES ($2, $1, $1)", "a", 3)
        row = await conn.fetch_one(
            "SELECT id, body, size FROM notes WHERE size = $2 AND id = $1 AND body = $1", "a", 3
        )

    assert row is not None
    assert tuple(row) == ("a", "a", 3)


async def test_ten_parameters_are_not_one_and_a_zero(database: Database) -> None:
    columns = ", ".join(f"CAST(${n} AS TEXT)" for n in range(10, 0, -1))

    async with database.read() as conn:
        row = await conn.fetch_one(f"SELECT {columns}", *"abcdefghij")

    assert row is not None
    assert "".join(row) == "jihgfedcba"


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        pytest.param([], [], id="no element matches nothing"),
        pytest.param(["n0007"], ["n0007"], id="one element"),
        pytest.param(["n0001", "x", "n0001"], ["n0001"], id="unknown and repeated elements"),
        pytest.param(
            [f"n{i:04}" for i in range(1000)], [f"n{i:04}" for i in range(1000)], id="a thousand"
        ),
        pytest.param(["'", '"', "\\", "ü🤗"], [], id="elements that need escaping"),
    ],
)
async def test_each_matches_any_element_of_a_list(
    database: Database, wanted: list[str], found: list[str]
) -> None:
    await numbered(database, 1200)

    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT id FROM notes WHERE id IN each($1) ORDER BY id", json.dumps(wanted)
        )

    assert [row["id"] for row in rows] == found


async def test_each_finds_what_was_written_with_strange_characters(database: Database) -> None:
    await write_note(database, "'\"\\ü🤗")

    async with database.read() as conn:
        count = await conn.fetch_value(
            "SELECT count(*) FROM notes WHERE id IN each($1)", json.dumps(["'\"\\ü🤗"])
        )

    assert count == 1


async def test_returning_tells_what_was_changed(database: Database) -> None:
    await numbered(database, 3)

    async with database.transaction() as conn:
        rows = await conn.fetch_all("UPDATE notes SET size = size + $1 RETURNING id, size", 10)

    assert sorted(tuple(row) for row in rows) == [("n0000", 10), ("n0001", 11), ("n0002", 12)]


@pytest.mark.parametrize(
    ("statement", "count"),
    [
        pytest.param("UPDATE notes SET size = 1", 3, id="an update of all"),
        pytest.param("UPDATE notes SET size = 1 WHERE id = 'x'", 0, id="an update of nothing"),
        pytest.param("DELETE FROM notes WHERE size > 0", 2, id="a deletion"),
        pytest.param("DELETE FROM notes WHERE size > 0 RETURNING id", 2, id="one that returns"),
        pytest.param("INSERT INTO notes (id) VALUES ('x'), ('y')", 2, id="an insertion"),
        pytest.param(
            "INSERT INTO notes (id) VALUES ('n0000') ON CONFLICT (id) DO NOTHING", 0, id="a clash"
        ),
        pytest.param("SELECT id FROM notes", 0, id="a question changes nothing"),
        pytest.param("ALTER TABLE notes ADD COLUMN other TEXT", 0, id="a change of the schema"),
    ],
)
async def test_execute_counts_the_rows_it_changed(
    database: Database, statement: str, count: int
) -> None:
    await numbered(database, 3)

    async with database.transaction() as conn:
        assert await conn.execute(statement) == count


async def test_execute_many_runs_a_statement_for_each_row(database: Database) -> None:
    async with database.transaction() as conn:
        await conn.execute_many(INSERT, [(f"n{i}", None, i, None, None) for i in range(3)])
        await conn.execute_many("DELETE FROM notes WHERE id = $1", [])
        await conn.execute_many("DELETE FROM notes WHERE id = $1", iter([("n1",)]))

    assert await notes_of(database) == ["n0", "n2"]


async def test_many_rows_are_added_with_every_kind_of_value(database: Database) -> None:
    rows = [(f"n{i}", ["a", None, ""][i], [2**63 - 1, None, 0][i], b"\0", i == 1) for i in range(3)]
    async with database.transaction() as conn:
        await conn.execute_many(INSERT, iter(rows))
        found = await conn.fetch_all("SELECT id, body, size, raw, seen FROM notes ORDER BY id")

    assert [(*row[:4], bool(row[4])) for row in map(tuple, found)] == rows


async def test_of_many_rows_those_that_are_there_may_be_left_out(database: Database) -> None:
    insert = "INSERT INTO notes (id, size) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING"
    async with database.transaction() as conn:
        await conn.execute_many(insert, [("a", 1), ("b", 2), ("a", 3)])
        await conn.execute_many(insert, [("b", 4), ("c", 5)])
        found = await conn.fetch_all("SELECT id, size FROM notes ORDER BY id")

    assert list(map(tuple, found)) == [("a", 1), ("b", 2), ("c", 5)]


async def test_of_many_rows_one_may_change_what_another_added(database: Database) -> None:
    insert = """
        INSERT INTO notes (id, size) VALUES ($1, $2)
        ON CONFLICT (id) DO UPDATE SET size = (notes.size + excluded.size)
    """
    async with database.transaction() as conn:
        await conn.execute_many(insert, [("a", 1), ("a", 2), ("b", 3)])
        found = await conn.fetch_all("SELECT id, size FROM notes ORDER BY id")

    assert list(map(tuple, found)) == [("a", 3), ("b", 3)]


async def test_of_many_rows_none_is_added_when_one_is_there(database: Database) -> None:
    with pytest.raises(UniqueViolation):
        async with database.transaction() as conn:
            await conn.execute_many(INSERT, [(each, None, 1, None, None) for each in "aba"])

    assert await notes_of(database) == []


async def test_many_thousand_rows_are_added(database: Database) -> None:
    await numbered(database, 2500)

    assert await notes_of(database) == [f"n{i:04}" for i in range(2500)]


async def test_where_there_is_no_row_there_is_no_value(database: Database) -> None:
    async with database.transaction() as conn:
        assert await conn.fetch_value("SELECT id FROM notes") is None
        assert await conn.fetch_one("SELECT id FROM notes") is None
        assert list(await conn.fetch_all("SELECT id FROM notes")) == []
    async with database.read() as reader:
        assert await reader.fetch_value("SELECT id FROM notes") is None
        assert await reader.fetch_one("SELECT id FROM notes") is None
        assert list(await reader.fetch_all("SELECT id FROM notes")) == []


async def test_the_same_key_again_is_a_unique_violation(database: Database) -> None:
    await write_note(database, "a")

    with pytest.raises(UniqueViolation):
        await write_note(database, "a")

    await write_note(database, "b")
    assert await notes_of(database) == ["a", "b"]


async def test_another_broken_rule_is_not_a_unique_violation(database: Database) -> None:
    with pytest.raises(Exception, match=r"(?i)not.null") as caught:
        async with database.transaction() as conn:
            await conn.execute("INSERT INTO facts (name) VALUES ('a')")

    assert not isinstance(caught.value, UniqueViolation | DatabaseUnavailable)


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        pytest.param("SELECT nothing FROM notes", (), id="a column that does not exist"),
        pytest.param("SELECT id FROM notes WHERE id = $1", (), id="a value too few"),
        pytest.param("SELECT id FROM notes WHERE id = $1", ("a", "b"), id="a value too many"),
        pytest.param("SELECT id FROM notes WHERE id = $1", (object(),), id="a value of no type"),
    ],
)
async def test_a_mistake_of_ours_does_not_look_like_an_absent_database(
    database: Database, statement: str, values: tuple[Any, ...]
) -> None:
    async with database.read() as reader:
        with pytest.raises(Exception) as read:  # noqa: PT011 - each engine has its own
            await reader.fetch_all(statement, *values)
        assert await note_ids(reader) == []
    with pytest.raises(Exception) as written:  # noqa: PT011 - as above
        async with database.transaction() as conn:
            await conn.fetch_all(statement, *values)

    for error in (read.value, written.value):
        assert type(error).__module__.partition(".")[0] in {"sqlite3", "asyncpg"}
    await write_note(database, "a")


async def test_a_reader_cannot_write(database: Database) -> None:
    async with database.read() as conn:
        with pytest.raises(DatabaseUnavailable):
            await conn.fetch_all("INSERT INTO notes (id) VALUES ('a') RETURNING id")

    assert await notes_of(database) == []


async def test_a_database_that_answers_passes_the_check(database: Database) -> None:
    await database.check()
