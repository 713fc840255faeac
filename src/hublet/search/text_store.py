"""SQL of the full text: texts with their words, and those that have all words of a query."""

import json
from collections.abc import Collection, Iterable, Sequence

from hublet.core.database import Connection, Reader, Row
from hublet.search.records import TextCandidate, TextDocument, TextKind, TextSource

# Of all lists together, the hottest first; the lists of public texts share most of it.
MOST_CANDIDATES = 2000
_MOST_PUBLIC = 1600
_FEWEST_OF_A_SCOPE = 10
# Scopes whose lists are read one by one; those of a caller with more are read as one.
_MOST_LISTS = 40
_COLUMNS = "number, kind, source_id, file, thread_id, repo_id, scope, rank, version, words"

# A text with its number.
NumberedText = tuple[int, TextDocument]


async def find(conn: Reader, source_ids: Collection[str]) -> list[NumberedText]:
    """Return what is in the index of these repositories, threads and comments themselves."""
    rows = await conn.fetch_all(
        f"SELECT {_COLUMNS} FROM search_texts WHERE source_id IN each($1)",
        json.dumps(list(source_ids)),
    )
    return [_numbered(row) for row in rows]


async def list_of_thread(conn: Reader, thread_id: str, *, limit: int) -> list[NumberedText]:
    rows = await conn.fetch_all(
        f"SELECT {_COLUMNS} FROM search_texts WHERE thread_id = $1 ORDER BY number LIMIT $2",
        thread_id, limit,
    )  # fmt: skip
    return [_numbered(row) for row in rows]


async def list_misplaced(
    conn: Reader, repo_id: str, place: str | None, *, limit: int
) -> list[NumberedText]:
    """Return texts of a repository whose scope does not end with this place; None: all of them."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS} FROM search_texts
        WHERE repo_id = $1 AND ($2 = 'all' OR substr(scope, 2) <> $3)
        ORDER BY number LIMIT $4
        """,
        repo_id, "all" if place is None else "misplaced", place or "", limit,
    )  # fmt: skip
    return [_numbered(row) for row in rows]


def _numbered(row: Row) -> NumberedText:
    pairs = (each.rpartition(":") for each in row["words"].split())
    return row["number"], TextDocument(
        kind=TextKind(row["kind"]),
        source_id=row["source_id"],
        file=row["file"],
        thread_id=row["thread_id"],
        repo_id=row["repo_id"],
        scope=row["scope"],
        rank=row["rank"],
        version=row["version"],
        words={word: int(weight) for word, _, weight in pairs},
    )


async def lock(conn: Connection) -> None:
    """Wait for others who write texts: numbers belong to all of them."""
    await conn.lock("search texts")


async def add(conn: Connection, text: TextDocument) -> None:
    number: int = await conn.fetch_value("SELECT coalesce(min(number), 0) - 1 FROM search_texts")
    await conn.execute(
        f"INSERT INTO search_texts ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        number, text.kind, text.source_id, text.file, text.thread_id, text.repo_id, text.scope,
        text.rank, text.version, _written(text),
    )  # fmt: skip
    await _add_words(conn, number, text, text.words)


async def replace(conn: Connection, number: int, before: TextDocument, after: TextDocument) -> None:
    """Replace a text; words that stay as they are are not written again."""
    await conn.execute(
        """
        UPDATE search_texts SET scope = $2, rank = $3, version = $4, words = $5 WHERE number = $1
        """,
        number, after.scope, after.rank, after.version, _written(after),
    )  # fmt: skip
    is_in_place = (before.scope, before.rank) == (after.scope, after.rank)
    same = before.words.items() & after.words.items() if is_in_place else set[tuple[str, int]]()
    kept = {word for word, _ in same}
    await _remove_words(conn, number, before, before.words.keys() - kept)
    await _add_words(conn, number, after, after.words.keys() - kept)


async def remove(conn: Connection, number: int, text: TextDocument) -> None:
    await conn.execute("DELETE FROM search_texts WHERE number = $1", number)
    await _remove_words(conn, number, text, text.words)


def _written(text: TextDocument) -> str:
    return " ".join(f"{word}:{weight}" for word, weight in text.words.items())


async def _add_words(
    conn: Connection, number: int, text: TextDocument, found: Iterable[str]
) -> None:
    await conn.execute_many(
        """
        INSERT INTO search_text_words (scope, word, rank, number, weight)
        VALUES ($1, $2, $3, $4, $5)
        """,
        [(text.scope, word, text.rank, number, text.words[word]) for word in sorted(found)],
    )


async def _remove_words(
    conn: Connection, number: int, text: TextDocument, found: Iterable[str]
) -> None:
    await conn.execute_many(
        """
        DELETE FROM search_text_words
        WHERE scope = $1 AND word = $2 AND rank = $3 AND number = $4
        """,
        [(text.scope, word, text.rank, number) for word in sorted(found)],
    )


async def count_words(conn: Reader, scopes: Sequence[str], found: Sequence[str]) -> list[int]:
    """Count the texts of these scopes that have each word, up to the number of candidates."""
    among = json.dumps(list(scopes))
    counts = [
        f"""
        (SELECT count(*) FROM (
            SELECT 1 FROM search_text_words
            WHERE scope IN each($1) AND word = ${place} LIMIT {MOST_CANDIDATES}
        ) AS counted)
        """
        for place in range(2, len(found) + 2)
    ]
    row = await conn.fetch_one(f"SELECT {', '.join(counts)}", among, *found)
    return list(row or ())


async def list_candidates(
    conn: Reader, scopes: Sequence[str], driver: str, others: Sequence[str]
) -> list[TextCandidate]:
    """Return texts that have all words: the list of one is read, the others are looked up by key."""
    values: list[object] = [driver, *others]
    lists = []
    for condition, most in _bounds(values, scopes):
        lists.append(
            f"""
            SELECT * FROM (
                SELECT scope, rank, number, weight FROM search_text_words
                WHERE {condition} AND word = $1 ORDER BY rank, number LIMIT {most}
            ) AS list
            """
        )
    joins = [
        f"""
        JOIN search_text_words w{place} ON w{place}.scope = c.scope AND w{place}.word = ${place}
            AND w{place}.rank = c.rank AND w{place}.number = c.number
        """
        for place in range(2, len(others) + 2)
    ]
    weights = ["c.weight", *(f"w{place}.weight" for place in range(2, len(others) + 2))]
    rows = await conn.fetch_all(
        f"""
        SELECT c.number, c.rank, {", ".join(weights)}
        FROM ({" UNION ALL ".join(lists)}) AS c {" ".join(joins)}
        """,
        *values,
    )
    return [
        TextCandidate(number=number, rank=rank, weights=tuple(found))
        for number, rank, *found in (tuple(row) for row in rows)
    ]


def _bounds(values: list[object], scopes: Sequence[str]) -> list[tuple[str, int]]:
    """Return the condition of each list, and how much of it is read; public ones come first."""
    ordered = sorted(scopes, key=len)
    public = sum(len(scope) == 1 for scope in ordered)
    alone, together = ordered[:_MOST_LISTS], ordered[_MOST_LISTS:]
    own = max(len(alone) - public + bool(together), 1)
    shares = [_MOST_PUBLIC // max(public, 1)] * public
    share = max((MOST_CANDIDATES - _MOST_PUBLIC) // own, _FEWEST_OF_A_SCOPE)
    bounds = []
    for scope in alone:
        values.append(scope)
        bounds.append((f"scope = ${len(values)}", shares.pop() if shares else share))
    if together:
        values.append(json.dumps(together))
        bounds.append((f"scope IN each(${len(values)})", share))
    return bounds


async def list_sources(conn: Reader, numbers: Collection[int]) -> dict[int, TextSource]:
    places = ", ".join(f"${place}" for place in range(1, len(numbers) + 1))
    rows = await conn.fetch_all(
        f"""
        SELECT number, kind, source_id, file, thread_id, repo_id FROM search_texts
        WHERE number IN ({places})
        """,
        *numbers,
    )
    return {
        row["number"]: TextSource(
            number=row["number"],
            kind=TextKind(row["kind"]),
            source_id=row["source_id"],
            file=row["file"],
            thread_id=row["thread_id"],
            repo_id=row["repo_id"],
        )
        for row in rows
    }
