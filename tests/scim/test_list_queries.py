"""A page costs the same wherever it is in the list."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from hublet.core.database import Database, Row
from scim.directories import Directory

PAGE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    sql: str
    values: tuple[Any, ...]
    # How many rows it brought.
    rows: int


class Noting:
    """A connection that notes the statements about a directory.

    Others are left out: who calls is remembered for a second, and asked for anew after that.
    """

    def __init__(self, conn: Any, statements: list[Statement]) -> None:
        self._conn = conn
        self._statements = statements
        self.hub = conn.hub

    def _note(self, sql: str, values: tuple[Any, ...], rows: int) -> None:
        if "scim_" in sql or "totals" in sql:
            self._statements.append(Statement(sql=sql, values=values, rows=rows))

    async def fetch_all(self, sql: str, *values: Any) -> Sequence[Row]:
        rows: Sequence[Row] = await self._conn.fetch_all(sql, *values)
        self._note(sql, values, len(rows))
        return rows

    async def fetch_one(self, sql: str, *values: Any) -> Row | None:
        row: Row | None = await self._conn.fetch_one(sql, *values)
        self._note(sql, values, 1)
        return row

    async def fetch_value(self, sql: str, *values: Any) -> Any:
        self._note(sql, values, 1)
        return await self._conn.fetch_value(sql, *values)


@pytest.fixture
def statements(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[Statement]:
    """What reading requests asked the database."""
    found: list[Statement] = []
    read = database.read

    @asynccontextmanager
    async def noted() -> AsyncIterator[Any]:
        async with read() as conn:
            yield Noting(conn, found)

    monkeypatch.setattr(database, "read", noted)
    return found


def _rows(statements: list[Statement]) -> list[int]:
    return [each.rows for each in statements]


async def _fill(directory: Directory, users: int) -> list[dict[str, Any]]:
    return [
        await directory.add(f"user-{number}", emails=[{"value": f"{number}@corp.test"}])
        for number in range(users)
    ]


async def test_every_page_takes_the_same_statements_and_rows(
    invited: Directory, statements: list[Statement]
) -> None:
    await _fill(invited, 4 * PAGE)

    spent = []
    for start in (1, PAGE + 1, 3 * PAGE + 1):
        statements.clear()
        names = await invited.user_names(startIndex=start, count=PAGE)
        assert len(names) == PAGE
        spent.append(_rows(statements))

    # The total, the page, and its addresses.
    assert spent == [[1, PAGE, PAGE]] * 3


async def test_a_look_up_brings_one_row(invited: Directory, statements: list[Statement]) -> None:
    await _fill(invited, 2 * PAGE)
    statements.clear()

    assert await invited.user_names(filter='userName eq "USER-7"') == ["user-7"]

    assert _rows(statements) == [1, 1, 1]


async def test_members_that_are_not_asked_for_are_not_read(
    invited: Directory, statements: list[Statement]
) -> None:
    await invited.add_group("Everybody", await _fill(invited, PAGE))
    statements.clear()

    await invited.ask("GET", "/Groups", params={"excludedAttributes": "members"})
    without = _rows(statements)
    statements.clear()
    await invited.ask("GET", "/Groups", params={"attributes": "displayName,members"})

    assert (without, _rows(statements)) == ([1, 1], [1, 1, PAGE])


PLANS = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN"}
# With next to no rows PostgreSQL takes one index for as good as another; what can be seen is that
# the column is compared as it stands, so that its own index can serve.
USED = {"sqlite": r"INDEX \S+ \(.*\b{}=\?", "postgresql": r"(?s)Index.*\((?:\w+\.)?{} = "}


async def _plan(database: Database, statement: Statement) -> str:
    async with database.transaction() as conn:
        if database.kind == "postgresql":
            # Tables this small would be read from end to end whatever indexes there are.
            await conn.execute("SET LOCAL enable_seqscan = off")
        rows = await conn.fetch_all(f"{PLANS[database.kind]} {statement.sql}", *statement.values)
    return "\n".join(str(value) for row in rows for value in row)


@pytest.mark.parametrize(
    ("path", "asked", "index"),
    [
        ("/Users", 'userName eq "USER-7"', "user_name_key"),
        ("/Users", 'externalId eq "x7"', "external_id"),
        ("/Users", 'emails.value eq "7@corp.test"', "address_key"),
        ("/Groups", 'displayName eq "engines"', "display_name_key"),
        ("/Groups", 'externalId eq "x7"', "external_id"),
    ],
)
async def test_a_look_up_uses_an_index(
    database: Database,
    invited: Directory,
    statements: list[Statement],
    path: str,
    asked: str,
    index: str,
) -> None:
    response = await invited.ask("GET", path, params={"filter": asked})

    assert response.status_code == 200
    # The total and the page; what belongs to its rows is read by their ids.
    searches = [each for each in statements if index in each.sql]
    assert len(searches) == 2
    for search in searches:
        plan = await _plan(database, search)
        assert re.search(USED[database.kind].format(index), plan), plan
