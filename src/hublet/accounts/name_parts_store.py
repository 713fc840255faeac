"""SQL of the index of names by their parts, of users and of repositories: an index of suffixes.

A name has a row for each of its positions, with what follows from there. So each part of it is the
beginning of a row, and all names with this part are neighbours in the key. The scope says who may
see a name, so that neither a count nor the time of an answer tells of names that somebody may not see.
"""

import json
from collections.abc import Collection, Iterable, Sequence

from hublet.core import metadata
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass

USERS = "user"
# How far older names are filled in: nothing, or this at the end.
FILLED_NAME = "name_parts_filled"
FILLED = "done"
# So many names are read for a page of a list.
MOST_FOUND = 2_000

_PART_LENGTH = 24
# Nothing sorts behind it.
_LAST = "\U0010ffff"
# A request may have very many words, and the longest of them tell most.
_MOST_RANGES = 16


@dataclass(frozen=True, slots=True)
class PartRange:
    first: str
    last: str


def fold(text: str) -> str:
    """Lower the letters of ASCII and no others, as `lower` does on both engines."""
    return text.encode().lower().decode()


def parts_of(names: Collection[str]) -> set[str]:
    """Return what the index has of these names, which are one user's or one repository's."""
    return {name[at : at + _PART_LENGTH] for name in names for at in range(len(name))}


async def add(conn: Connection, scope: str, names: Collection[str], *, id: str) -> None:  # noqa: A002 - the column
    await add_all(conn, [(scope, names, id)])


async def add_all(conn: Connection, named: Iterable[tuple[str, Collection[str], str]]) -> None:
    """Add what has names: its scope, the names and its id."""
    await conn.execute_many(
        "INSERT INTO name_parts (scope, part, id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        sorted((scope, part, each) for scope, names, each in named for part in parts_of(names)),
    )


async def remove(
    conn: Connection,
    scopes: Collection[str],
    parts: Collection[str],
    *,
    id: str,  # noqa: A002 - the column
) -> None:
    await conn.execute(
        """
        DELETE FROM name_parts WHERE scope IN each($1) AND part IN each($2) AND id = $3
        """,
        json.dumps(list(scopes)), json.dumps(sorted(parts)), id,
    )  # fmt: skip


async def add_users(conn: Connection, *, after: str, limit: int) -> str | None:
    """Add the names of some users, the smallest ids first; return the last id, or None at the end."""
    rows = await conn.fetch_all(
        "SELECT id, name, fullname FROM users WHERE id > $1 ORDER BY id LIMIT $2", after, limit
    )
    await add_all(
        conn, [(USERS, {fold(row["name"]), fold(row["fullname"])}, row["id"]) for row in rows]
    )
    return rows[-1]["id"] if rows else None


async def is_filled(conn: Reader) -> bool:
    """Tell whether the index has all names, also those from before there was one."""
    return await metadata.find(conn, FILLED_NAME) in {None, FILLED}


async def find_ids(
    conn: Reader, scopes: Collection[str], texts: Collection[str]
) -> tuple[str, ...] | None:
    """Return the ids of names among which are all that contain each of these texts; None: of too many.

    Those with the rarest part are read. The reader looks at the names themselves: the index knows
    no text that is longer than its parts, and may tell of a name that was changed meanwhile.
    """
    ranges = ranges_of(texts)
    if not ranges:
        return None
    within = json.dumps(list(scopes))
    counts = await _counts(conn, within, ranges)
    count, rarest = min(zip(counts, ranges, strict=True), key=lambda counted: counted[0])
    if count > MOST_FOUND:
        return None
    # Asked also when there are none: how long an answer takes depends on nothing but what is told.
    rows = await conn.fetch_all(
        "SELECT id FROM name_parts WHERE scope IN each($1) AND part BETWEEN $2 AND $3",
        within, rarest.first, rarest.last,
    )  # fmt: skip
    return tuple({row["id"] for row in rows})


async def _counts(conn: Reader, scopes: str, ranges: Sequence[PartRange]) -> list[int]:
    """Return how many rows are in each range, counted up to a limit."""
    values: list[object] = [scopes, MOST_FOUND + 1]
    counts = list[str]()
    for each in ranges:
        values += (each.first, each.last)
        counts.append(
            f"""
            (SELECT count(*) FROM (
                SELECT 1 FROM name_parts WHERE scope IN each($1)
                AND part BETWEEN ${len(values) - 1} AND ${len(values)} LIMIT $2
            ) AS counted)
            """
        )
    row = await conn.fetch_one(
        "SELECT " + ", ".join(f"{count} AS count_{n}" for n, count in enumerate(counts)), *values
    )
    return list(row) if row else []


def ranges_of(texts: Collection[str]) -> list[PartRange]:
    longest = sorted({text for text in texts if text}, key=lambda text: (-len(text), text))
    pieces = dict.fromkeys(piece for text in longest for piece in _pieces(text))
    return [
        PartRange(piece, piece + _LAST * (_PART_LENGTH - len(piece)))
        for piece in list(pieces)[:_MOST_RANGES]
    ]


def _pieces(text: str) -> list[str]:
    """Cut a text into pieces that the index can have, side by side, the last one at its end."""
    starts = [*range(0, len(text) - _PART_LENGTH, _PART_LENGTH), max(0, len(text) - _PART_LENGTH)]
    return [text[at : at + _PART_LENGTH] for at in starts]
