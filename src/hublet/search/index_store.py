"""SQL that writes the index: documents, their words and the spellings of these."""

import json
from collections.abc import Collection, Iterable

from hublet.core.database import Connection, Reader, Row
from hublet.search import documents, words
from hublet.search.records import SearchDocument, SearchKind

_COLUMNS = "number, kind, target_id, scope, heat, text_version, names, words"


async def find(conn: Reader, target_ids: Collection[str]) -> dict[str, tuple[int, SearchDocument]]:
    """Return the documents of these targets, each with its number."""
    rows = await conn.fetch_all(
        f"SELECT {_COLUMNS} FROM search_documents WHERE target_id IN each($1)",
        json.dumps(list(target_ids)),
    )
    return {row["target_id"]: (row["number"], _record(row)) for row in rows}


def _record(row: Row) -> SearchDocument:
    whole_names, names = documents.read_lines(row["names"])
    labels, text = documents.read_lines(row["words"])
    return SearchDocument(
        kind=SearchKind(row["kind"]),
        target_id=row["target_id"],
        scope=row["scope"],
        heat=row["heat"],
        whole_names=whole_names,
        names=names,
        labels=labels,
        text=text,
        text_version=row["text_version"],
    )


async def lock(conn: Connection) -> None:
    """Wait for others who write the index: numbers and spellings belong to all documents."""
    await conn.lock("search index")


async def add(conn: Connection, document: SearchDocument) -> int:
    """Add a document and return its number."""
    number: int = await conn.fetch_value(
        "SELECT coalesce(min(number), 0) - 1 FROM search_documents"
    )
    await conn.execute(
        f"INSERT INTO search_documents ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        number, document.kind, document.target_id, document.scope, document.heat,
        document.text_version, *_lines(document),
    )  # fmt: skip
    return number


def _lines(document: SearchDocument) -> tuple[str, str]:
    names = documents.write_lines(document.whole_names, document.names)
    return names, documents.write_lines(document.labels, document.text)


async def update(conn: Connection, number: int, document: SearchDocument) -> None:
    await conn.execute(
        """
        UPDATE search_documents SET scope = $2, heat = $3, text_version = $4, names = $5,
            words = $6 WHERE number = $1
        """,
        number, document.scope, document.heat, document.text_version, *_lines(document),
    )  # fmt: skip


async def remove(conn: Connection, number: int) -> None:
    await conn.execute("DELETE FROM search_documents WHERE number = $1", number)


# A word of a document: its scope, the word, its rank.
WordKey = tuple[str, str, int]


async def add_words(conn: Connection, number: int, keys: Iterable[WordKey]) -> None:
    await conn.execute_many(
        "INSERT INTO search_words (scope, word, rank, number) VALUES ($1, $2, $3, $4)",
        [(*key, number) for key in sorted(keys)],
    )


async def remove_words(conn: Connection, number: int, keys: Iterable[WordKey]) -> None:
    await conn.execute_many(
        "DELETE FROM search_words WHERE scope = $1 AND word = $2 AND rank = $3 AND number = $4",
        [(*key, number) for key in sorted(keys)],
    )


# A word that may be mistyped, and the scope in which it stands.
SpelledWord = tuple[str, str]


async def add_spellings(conn: Connection, found: Collection[SpelledWord]) -> None:
    await conn.execute_many(
        """
        INSERT INTO search_spellings (scope, spelling, word) VALUES ($1, $2, $3)
        ON CONFLICT DO NOTHING
        """,
        [
            (scope, spelling, word)
            for scope, word in sorted(found)
            if not await _is_spelled(conn, scope, word)
            for spelling in words.spellings(word)
        ],
    )


async def _is_spelled(conn: Reader, scope: str, word: str) -> bool:
    found = await conn.fetch_value(
        "SELECT 1 FROM search_spellings WHERE scope = $1 AND spelling = $2 AND word = $2",
        scope, word,
    )  # fmt: skip
    return found is not None


async def remove_unused_spellings(conn: Connection, former: Collection[SpelledWord]) -> None:
    """Remove the spellings of those words that no document of their scope has any more."""
    for scope, word in sorted(former):
        used = await conn.fetch_value(
            "SELECT 1 FROM search_words WHERE scope = $1 AND word = $2 LIMIT 1", scope, word
        )
        if used is None:
            await conn.execute_many(
                "DELETE FROM search_spellings WHERE scope = $1 AND spelling = $2 AND word = $3",
                [(scope, spelling, word) for spelling in words.spellings(word)],
            )
