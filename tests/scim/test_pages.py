"""A page costs the same wherever it is in the list."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hublet.core.database import Database, Row
from scim.directories import Directory

PAGE = 10


class Counting:
    """A connection that notes how many rows each statement about a directory brings.

    Others are left out: who calls is remembered for a second, and asked for anew after that.
    """

    def __init__(self, conn: Any, counts: list[int]) -> None:
        self._conn = conn
        self._counts = counts
        self.hub = conn.hub

    def _count(self, sql: str, rows: int) -> None:
        if "scim_" in sql:
            self._counts.append(rows)

    async def fetch_all(self, sql: str, *values: Any) -> Sequence[Row]:
        rows: Sequence[Row] = await self._conn.fetch_all(sql, *values)
        self._count(sql, len(rows))
        return rows

    async def fetch_one(self, sql: str, *values: Any) -> Row | None:
        row: Row | None = await self._conn.fetch_one(sql, *values)
        self._count(sql, 1)
        return row

    async def fetch_value(self, sql: str, *values: Any) -> Any:
        self._count(sql, 1)
        return await self._conn.fetch_value(sql, *values)


@pytest.fixture
def counts(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each statement of a reading request brought."""
    found: list[int] = []
    read = database.read

    @asynccontextmanager
    async def counted() -> AsyncIterator[Any]:
        async with read() as conn:
            yield Counting(conn, found)

    monkeypatch.setattr(database, "read", counted)
    return found


async def _fill(directory: Directory, users: int) -> list[dict[str, Any]]:
    return [
        await directory.add(f"user-{number}", emails=[{"value": f"{number}@corp.test"}])
        for number in range(users)
    ]


async def test_every_page_takes_the_same_statements_and_rows(
    invited: Directory, counts: list[int]
) -> None:
    await _fill(invited, 4 * PAGE)

    spent = []
    for start in (1, PAGE + 1, 3 * PAGE + 1):
        counts.clear()
        names = await invited.user_names(startIndex=start, count=PAGE)
        assert len(names) == PAGE
        spent.append(list(counts))

    # The total, the page, and its addresses.
    assert spent == [[1, PAGE, PAGE]] * 3


async def test_a_look_up_brings_one_row(invited: Directory, counts: list[int]) -> None:
    await _fill(invited, 2 * PAGE)
    counts.clear()

    assert await invited.user_names(filter='userName eq "USER-7"') == ["user-7"]

    assert counts == [1, 1, 1]


async def test_members_that_are_not_asked_for_are_not_read(
    invited: Directory, counts: list[int]
) -> None:
    await invited.add_group("Everybody", await _fill(invited, PAGE))
    counts.clear()

    await invited.ask("GET", "/Groups", params={"excludedAttributes": "members"})
    without = list(counts)
    counts.clear()
    await invited.ask("GET", "/Groups", params={"attributes": "displayName,members"})

    assert (without, counts) == ([1, 1], [1, 1, PAGE])


PLANS = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN"}


async def test_a_look_up_by_name_or_external_id_uses_an_index(
    database: Database, invited: Directory
) -> None:
    for column in ("user_name_key", "external_id"):
        async with database.transaction() as conn:
            if database.kind == "postgresql":
                await conn.execute("SET LOCAL enable_seqscan = off")
            rows = await conn.fetch_all(
                f"{PLANS[database.kind]} SELECT id FROM scim_users s WHERE "
                f"s.organization_id = $1 AND s.managed = $2 AND s.{column} = $3",
                invited.organization.id, False, "x",
            )  # fmt: skip
        plan = " ".join(str(value) for row in rows for value in row)
        assert column in plan, plan
        assert "Index" in plan or "INDEX" in plan
