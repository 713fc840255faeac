"""Partitions by day, on PostgreSQL: made ahead of their day, and dropped with all that is in it.

Ids begin with their time, so a day is a range of ids. A partition `_default` catches rows that have no
day, and a partition `_before…` has what was there before there were days. SQLite has one table: nothing
here does anything there.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from hublet.core.clock import micros
from hublet.core.database.engine import Connection, Database, DatabaseUnavailable, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.ids import id_at
from hublet.core.logs import get_logger

log = get_logger("database")

DAYS_AHEAD = 7
DAY = 86_400_000_000
_MOST_STRAY = 10_000
# All who use the table wait behind this one: better another time than long.
_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '1s'"


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTable:
    """A table whose partitions are ranges of this column, which holds ids."""

    name: str
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DayPartition:
    name: str
    # The first moment after its days, in microseconds.
    end: int

    @property
    def end_id(self) -> str:
        return id_at(self.end)


async def add_days(database: Database, tables: Iterable[DayTable]) -> None:
    """Add the partitions of today and of the next days; one that cannot be added now is left out."""
    if database.kind != "postgresql":
        return
    for table in tables:
        async with database.read() as conn:
            known = await _list(conn, table.name)
        for number in range(DAYS_AHEAD + 1):
            day = micros() // DAY + number
            if not _covers(known, table, day):
                try:
                    await _add_day(database, table, day)
                except DatabaseUnavailable as error:
                    log.warning("partition not added", table=table.name, reason=error.reason)


async def _add_day(database: Database, table: DayTable, day: int) -> None:
    name, low, high = _name(table, day), id_at(day * DAY), id_at((day + 1) * DAY)
    async with database.transaction() as conn:
        await conn.lock(f"partitions of {table.name}")
        if _covers(await _list(conn, table.name), table, day):
            return
        await conn.execute(_LOCK_TIMEOUT)
        # Rows of that day that came too early, or while nobody made its partition, move into it.
        await conn.execute(f"LOCK TABLE {table.name}_default IN ACCESS EXCLUSIVE MODE")
        await conn.execute(f"CREATE TABLE {name} (LIKE {table.name} INCLUDING ALL)")
        await conn.execute(
            f"""
            WITH moved AS (
                DELETE FROM {table.name}_default
                WHERE {table.column} >= '{low}' AND {table.column} < '{high}' RETURNING *
            )
            INSERT INTO {name} SELECT * FROM moved
            """
        )
        await conn.execute(
            f"ALTER TABLE {table.name} ATTACH PARTITION {name} FOR VALUES FROM ('{low}') TO ('{high}')"
        )


async def list_ended(database: Database, table: DayTable, *, before: int) -> list[DayPartition]:
    """Return the partitions whose days all ended before this moment, oldest first."""
    if database.kind != "postgresql":
        return []
    async with database.read() as conn:
        known = await _list(conn, table.name)
    return sorted((each for each in known if each.end <= before), key=lambda each: each.end)


async def drop(
    conn: Connection,
    table: DayTable,
    partition: DayPartition,
    *,
    keep: str,
    values: tuple[Any, ...],
) -> None:
    """Drop a partition; its rows `p` for which the condition holds stay in the table."""
    await conn.execute(_LOCK_TIMEOUT)
    await conn.lock(f"partitions of {table.name}")
    if partition not in await _list(conn, table.name):
        return
    await conn.execute(f"ALTER TABLE {table.name} DETACH PARTITION {partition.name}")
    await conn.execute(
        f"INSERT INTO {table.name} SELECT p.* FROM {partition.name} p WHERE {keep}", *values
    )
    await conn.execute(f"DROP TABLE {partition.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSurvey:
    """How a table by days stands."""

    table: str
    # How many of the next days have a partition already; -1 when not even today has one.
    days_ahead: int
    # Rows that have no day, up to a bound: none are expected.
    stray_rows: int


async def survey(conn: Reader, tables: Iterable[DayTable]) -> list[PartitionSurvey]:
    """Return how tables by days stand, on PostgreSQL."""
    surveys = []
    for table in tables:
        known = await _list(conn, table.name)
        today = micros() // DAY
        ahead = -1
        while ahead <= DAYS_AHEAD and _covers(known, table, today + ahead + 1):
            ahead += 1
        stray: int = await conn.fetch_value(
            f"SELECT count(*) FROM (SELECT 1 FROM {table.name}_default LIMIT {_MOST_STRAY}) AS stray"
        )
        surveys.append(PartitionSurvey(table=table.name, days_ahead=ahead, stray_rows=stray))
    return surveys


async def _list(conn: Reader, table: str) -> list[DayPartition]:
    rows = await conn.fetch_all(
        """
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = to_regclass($1)
        """,
        table,
    )
    return [found for row in rows if (found := _parse(row["relname"], table)) is not None]


def _parse(name: str, table: str) -> DayPartition | None:
    found = re.fullmatch(rf"{table}_(day|before)(\d{{8}})", name)
    if found is None:
        return None
    moment = datetime.strptime(found[2], "%Y%m%d").replace(tzinfo=UTC)
    end = moment + timedelta(days=1 if found[1] == "day" else 0)
    return DayPartition(name=name, end=round(end.timestamp()) * 1_000_000)


def _name(table: DayTable, day: int) -> str:
    return f"{table.name}_day{datetime.fromtimestamp(day * DAY / 1e6, tz=UTC):%Y%m%d}"


def _covers(known: Iterable[DayPartition], table: DayTable, day: int) -> bool:
    """Tell whether a day has a partition, alone or with all before it."""
    return any(
        each.name == _name(table, day) or ("_before" in each.name and each.end >= (day + 1) * DAY)
        for each in known
    )
