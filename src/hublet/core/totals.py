"""Totals: counts and sums that triggers keep, so that reading one costs the same however much it counts.

A trigger belongs to the transaction of the change, and so does what it writes. On PostgreSQL it only adds
a row to `total_changes`, because transactions that changed one row would wait for each other; the worker
folds these rows into `totals`. SQLite has one writer, and its triggers change the total itself. A total is
read as both together, in one statement. The triggers are in the migrations.
"""

import json
from collections import Counter
from collections.abc import Iterable

from hublet.core.database import Connection, Database, Reader

# How many changes one transaction folds.
FOLDED_AT_ONCE = 5_000
# What follows, in the order of bytes, the slash with which parts begin.
_AFTER_PARTS = "0"
# Two who fold at the same time fold different changes.
_TAKE = {
    "sqlite": """
        DELETE FROM total_changes WHERE rowid IN (SELECT rowid FROM total_changes LIMIT $1)
        RETURNING kind, subject, change
    """,
    "postgresql": """
        DELETE FROM total_changes WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM total_changes LIMIT $1 FOR UPDATE SKIP LOCKED
        )) RETURNING kind, subject, change
    """,
}


def _rows(condition: str) -> str:
    """Return the rows whose sum is a total; SQLite does not carry every condition into both parts."""
    return f"""(
        SELECT kind, subject, value FROM totals WHERE {condition}
        UNION ALL
        SELECT kind, subject, change FROM total_changes WHERE {condition}
    ) AS t"""


def _sum(condition: str) -> str:
    return f"SELECT CAST(coalesce(sum(t.value), 0) AS BIGINT) FROM {_rows(condition)}"


async def read(conn: Reader, kind: str, subject: str) -> int:
    total: int = await conn.fetch_value(_sum("kind = $1 AND subject = $2"), kind, subject)
    return total


async def read_difference(conn: Reader, kind: str, less: str, subject: str) -> int:
    """Return the total of one kind less that of another, as both were at one moment."""
    whole, part = _sum("kind = $1 AND subject = $3"), _sum("kind = $2 AND subject = $3")
    total: int = await conn.fetch_value(f"SELECT ({whole}) - ({part})", kind, less, subject)
    return total


async def read_many(
    conn: Reader, kinds: Iterable[str], subjects: Iterable[str]
) -> dict[tuple[str, str], int]:
    """Return the totals that are not zero, by kind and subject."""
    rows = await conn.fetch_all(
        f"""
        SELECT t.kind, t.subject, CAST(sum(t.value) AS BIGINT) AS value
        FROM {_rows("kind IN each($1) AND subject IN each($2)")} GROUP BY t.kind, t.subject
        """,
        json.dumps(list(kinds)), json.dumps(list(subjects)),
    )  # fmt: skip
    return {(row["kind"], row["subject"]): row["value"] for row in rows if row["value"]}


async def read_parts(conn: Reader, kind: str, subject: str) -> dict[str, int]:
    """Return the totals of the parts of a subject that are not zero, by part."""
    rows = await conn.fetch_all(
        f"""
        SELECT t.subject, CAST(sum(t.value) AS BIGINT) AS value
        FROM {_rows("kind = $1 AND subject > $2 AND subject < $3")} GROUP BY t.subject
        """,
        kind, f"{subject}/", f"{subject}{_AFTER_PARTS}",
    )  # fmt: skip
    return {
        row["subject"].removeprefix(f"{subject}/"): row["value"] for row in rows if row["value"]
    }


async def read_with_parts(conn: Reader, kinds: Iterable[str], subject: str) -> int:
    """Return the sum of these kinds for a subject and all of its parts."""
    total: int = await conn.fetch_value(
        _sum("kind IN each($1) AND subject >= $2 AND subject < $3"),
        json.dumps(list(kinds)), subject, f"{subject}{_AFTER_PARTS}",
    )  # fmt: skip
    return total


async def fold(database: Database) -> int:
    """Add changes to their totals, and return how many.

    Any number may fold at the same time, and whoever reads sees a change either in the total or
    beside it. A look comes first, so that nothing to do holds up nobody.
    """
    async with database.read() as conn:
        if await conn.fetch_one("SELECT 1 FROM total_changes LIMIT 1") is None:
            return 0
    async with database.transaction() as conn:
        return await _fold(conn, kind=database.kind)


async def _fold(conn: Connection, *, kind: str) -> int:
    rows = await conn.fetch_all(_TAKE[kind], FOLDED_AT_ONCE)
    sums = Counter[tuple[str, str]]()
    for row in rows:
        sums[row["kind"], row["subject"]] += row["change"]
    # In one order, or two who fold could wait for each other.
    await conn.execute_many(
        """
        INSERT INTO totals (kind, subject, value) VALUES ($1, $2, $3)
        ON CONFLICT (kind, subject) DO UPDATE SET value = totals.value + excluded.value
        """,
        [(*key, change) for key, change in sorted(sums.items()) if change],
    )
    return len(rows)
