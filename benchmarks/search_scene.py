"""A hub with many repositories and the index of them, written row by row as the hub would."""

import random
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from benchmarks.discussions import add_users
from hublet.core.clock import micros
from hublet.core.database import Connection, Database
from hublet.core.ids import new_object_id
from hublet.search import documents, words
from hublet.search.records import SearchDocument, SearchKind

_OWNERS = 2_000
_VOCABULARY = 20_000
_TAGS = 200
# So many have words of their own; others repeat them, under other names.
_DIFFERENT = 50_000
# Of ten repositories, this many are private.
_PRIVATE = 3
_AT_ONCE = 10_000
# Entries in the order in which they are made; a tree that grows in its own order grows much faster.
_UNSORTED = """
    CREATE TABLE unsorted_words
        (scope TEXT NOT NULL, word TEXT NOT NULL, rank BIGINT NOT NULL, number BIGINT NOT NULL);
"""
_LETTERS = "etaoinshrdlucmfwypvbgkjqxz"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScene:
    """What can be asked: words by how often they are used, and a user with private repositories."""

    reader_id: str
    vocabulary: Sequence[str]


async def load(database: Database, *, repos: int) -> SearchScene:
    """Fill a new hub with models; the same number gives the same hub."""
    chance = random.Random(repos)
    vocabulary = vocabulary_of(random.Random(1))
    ids = await add_users(database, "maker", min(_OWNERS, max(repos // 10, 2)))
    async with database.transaction() as conn:
        await conn.apply(_UNSORTED)
    made, spelled, different = 0, set[tuple[str, str]](), min(repos, _DIFFERENT)
    while made < different:
        size = min(_AT_ONCE, different - made)
        rows = list(_repos(chance, vocabulary, ids, start=made, count=size))
        async with database.transaction() as conn:
            if isinstance(raw := getattr(database, "writer", None), sqlite3.Connection):
                raw.execute("PRAGMA cache_size = -1000000")
                raw.execute("PRAGMA temp_store = FILE")
            with conn.in_bulk():
                await _add(conn, rows, spelled)
        made += size
    async with database.transaction() as conn:
        with conn.in_bulk():
            await _finish(
                conn,
                copies=repos // different,
                different=different,
                is_clustered=database.kind == "sqlite",
            )
    return SearchScene(reader_id=ids[0], vocabulary=vocabulary)


async def _finish(conn: Connection, *, copies: int, different: int, is_clustered: bool) -> None:
    """Add the copies, and all entries in the order of the tree that holds them, or before there is one."""
    for copy in range(1, copies):
        await _add_copies(conn, copy, different)
    numbers = ", ".join(f"({copy})" for copy in range(copies))
    entries = f"""
        INSERT INTO search_words
        SELECT scope, word, rank, number - copies.column1 * {different}
        FROM unsorted_words CROSS JOIN (VALUES {numbers}) AS copies
    """
    if is_clustered:
        await conn.execute(f"{entries} ORDER BY 1, 2, 3, 4")
    else:
        # A migration may take its time; another statement may not.
        await conn.apply(
            f"""
            SET LOCAL maintenance_work_mem = '1GB';
            ALTER TABLE search_words DROP CONSTRAINT search_words_pkey;
            {entries};
            ALTER TABLE search_words ADD PRIMARY KEY (scope, word, rank, number);
            """
        )
    await conn.execute("DROP TABLE unsorted_words")
    await conn.apply("ANALYZE;")


def vocabulary_of(chance: random.Random) -> list[str]:
    """Return words of the length of real ones, the most used first."""
    found: dict[str, None] = {}
    weights = [1 / (place + 2) for place in range(len(_LETTERS))]
    while len(found) < _VOCABULARY:
        length = min(max(round(chance.gauss(6, 2)), 2), 14)
        found["".join(chance.choices(_LETTERS, weights, k=length))] = None
    return list(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repo:
    id: str
    owner_id: str
    name: str
    likes: int
    document: SearchDocument


def _repos(
    chance: random.Random, vocabulary: list[str], owner_ids: list[str], *, start: int, count: int
) -> Iterator[_Repo]:
    zipf = list(accumulate(1 / (rank + 5) for rank in range(len(vocabulary))))
    for number in range(start, start + count):
        owner = min(int(chance.paretovariate(1)) - 1, len(owner_ids) - 1)
        parts = chance.choices(vocabulary, cum_weights=zipf, k=chance.randint(2, 3))
        name = [*parts, f"v{number}"]
        likes = int(chance.paretovariate(0.7)) - 1
        repo_id, is_private = new_object_id(), number % 10 < _PRIVATE
        owner_words = ["maker", str(owner)]
        yield _Repo(
            id=repo_id,
            owner_id=owner_ids[owner],
            name="-".join(name),
            likes=likes,
            document=SearchDocument(
                kind=SearchKind.model,
                target_id=repo_id,
                scope=documents.owner_scope("m", owner_ids[owner]) if is_private else "m",
                heat=documents.heat_of(likes),
                whole_names=(words.joined(name), words.joined([*owner_words, *name])),
                names=tuple(dict.fromkeys([*owner_words, *name])),
                labels=tuple(dict.fromkeys(chance.choices(vocabulary[:_TAGS], k=4))),
                text=tuple(dict.fromkeys(chance.choices(vocabulary, cum_weights=zipf, k=8))),
            ),
        )


async def _add(conn: Connection, repos: Sequence[_Repo], spelled: set[tuple[str, str]]) -> None:
    """Add repositories and their entries; `spelled` are the words that have spellings already."""
    now = micros()
    await conn.execute_many(
        """
        INSERT INTO repos
            (id, type, owner_id, name, name_key, visibility, creator_id, tags, likes, created_at,
             updated_at)
        VALUES ($1, 'model', $2, $3, $3, $4, $2, '[]', $5, $6, $6)
        """,
        [
            (
                each.id, each.owner_id, each.name,
                "public" if each.document.scope == "m" else "private", each.likes, now,
            )
            for each in repos
        ],
    )  # fmt: skip
    lowest = await conn.fetch_value("SELECT coalesce(min(number), 0) FROM search_documents")
    numbered = list(enumerate((each.document for each in repos), start=1))
    await conn.execute_many(
        """
        INSERT INTO search_documents (number, kind, target_id, scope, heat, names, words)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        """,
        [
            (
                lowest - number, each.kind, each.target_id, each.scope, each.heat,
                documents.write_lines(each.whole_names, each.names),
                documents.write_lines(each.labels, each.text),
            )
            for number, each in numbered
        ],
    )  # fmt: skip
    await conn.execute_many(
        "INSERT INTO unsorted_words (scope, word, rank, number) VALUES ($1, $2, $3, $4)",
        (
            (each.scope, word, rank, lowest - number)
            for number, each in numbered
            for word, rank in documents.ranks_of(each).items()
        ),
    )
    new_words = {
        (each.scope, word) for _, each in numbered for word in documents.correctable_words(each)
    } - spelled
    spelled |= new_words
    await conn.execute_many(
        "INSERT INTO search_spellings (scope, spelling, word) VALUES ($1, $2, $3)",
        (
            (scope, spelling, word)
            for scope, word in sorted(new_words)
            for spelling in words.spellings(word)
        ),
    )


async def _add_copies(conn: Connection, copy: int, different: int) -> None:
    """Add everything once more, with ids, names and numbers that differ."""
    prefix, below = f"{copy:04x}", copy * different
    await conn.execute(
        """
        INSERT INTO repos
            (id, type, owner_id, name, name_key, visibility, creator_id, tags, likes, created_at,
             updated_at)
        SELECT $1 || substr(r.id, 5), type, owner_id, name || '-' || $1, name_key || '-' || $1,
               visibility, creator_id, tags, likes, created_at, updated_at
        FROM search_documents d JOIN repos r ON r.id = d.target_id WHERE d.number >= $2
        """,
        prefix, -different,
    )  # fmt: skip
    await conn.execute(
        """
        INSERT INTO search_documents (number, kind, target_id, scope, heat, names, words)
        SELECT number - $3, kind, $1 || substr(target_id, 5), scope, heat, names, words
        FROM search_documents WHERE number >= $2
        """,
        prefix, -different, below,
    )  # fmt: skip
