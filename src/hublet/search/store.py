"""SQL of queries: documents that have the words of a query, the best first, and similar words.

Every list of the index is read in its own order and to a limit, whatever the hub has: scopes of others
are not looked up at all. A query of several words reads the list of the rarest one, at most
`MOST_CANDIDATES` of a kind, and looks for the others in the documents.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hublet.core.database import Reader, Row
from hublet.core.dataclasses import dataclass
from hublet.search import words
from hublet.search.records import Candidate, IndexPosition, SearchKind

MOST_CANDIDATES = 400
# So many of these are public; the scopes of a caller share the rest.
_MOST_PUBLIC = 300
_FEWEST_OF_A_SCOPE = 10
_MOST_SIMILAR = 200
# Scopes whose lists are read one by one: SQLite allows 500 in a statement, PostgreSQL plans each.
_MOST_LISTS = 40
_LAST_LETTER = "\U0010ffff"
_COLUMNS = "c.rank, c.number, d.kind, d.target_id, d.text_version IS NOT NULL AS has_text"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordQuery:
    """The words of a query: one whose list is read, others that documents must have too."""

    driver: str = ""
    others: tuple[str, ...] = ()
    # All of them as one word.
    whole: str = ""


class _Parameters:
    """Values of a statement under construction, each with its number."""

    def __init__(self) -> None:
        self.all: list[object] = []

    def put(self, value: object) -> str:
        self.all.append(value)
        return f"${len(self.all)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _ListBounds:
    """What the lists of a statement have in common, as it stands in SQL."""

    # Conditions, each with how many entries are looked at when there are several words.
    scopes: Sequence[str]
    shares: Sequence[str]
    position: str
    most: str


async def list_candidates(
    conn: Reader, scopes: Sequence[str], query: WordQuery, *, after: IndexPosition, limit: int
) -> list[Candidate]:
    """Return documents of these scopes that have all words of a query, the best first."""
    if not scopes:
        return []
    values = _Parameters()
    bounds = _ListBounds(
        scopes=_scope_conditions(values, scopes),
        shares=_shares(scopes),
        position=f"({values.put(after.rank)}, {values.put(after.number)})",
        most=values.put(limit),
    )
    matches = [_matches(values, bounds, query)]
    if query.others:
        # A name that is written in one word is found by its parts, and comes first.
        matches.append(_exact_matches(values, bounds, query.whole))
    rows = await conn.fetch_all(
        f"{' UNION ALL '.join(matches)} ORDER BY 1, 2 LIMIT {bounds.most}", *values.all
    )
    return [_candidate(row) for row in rows]


def _scope_conditions(values: _Parameters, scopes: Sequence[str]) -> list[str]:
    """Return a condition for each list that is read in its order, and one for all others.

    Public scopes, which are short, come first: their lists are the long ones.
    """
    ordered = sorted(scopes, key=len)
    alone, together = ordered[:_MOST_LISTS], ordered[_MOST_LISTS:]
    conditions = [f"scope = {values.put(scope)}" for scope in alone]
    if together:
        conditions.append(f"scope IN each({values.put(json.dumps(together))})")
    return conditions


def _shares(scopes: Sequence[str]) -> list[str]:
    """Return how many entries each list of `_scope_conditions` gives.

    As SQL: a parameter would need a place in every list, and PostgreSQL must know its type.
    """
    public = sum(len(scope) == 1 for scope in scopes)
    lists = min(len(scopes), _MOST_LISTS + 1)
    own = (MOST_CANDIDATES - _MOST_PUBLIC) // max(lists - public, 1)
    shares = [_MOST_PUBLIC] * public + [max(own, _FEWEST_OF_A_SCOPE)] * (lists - public)
    return [str(share) for share in shares]


def _matches(values: _Parameters, bounds: _ListBounds, query: WordQuery) -> str:
    conditions = [_has_word(values, word) for word in query.others]
    if query.others:
        whole = values.put(f"% {query.whole} %")
        conditions.append(f"d.names NOT LIKE {whole} AND d.words NOT LIKE {whole}")
        lists = [
            _best_of_scope(values, replace(bounds, most=most), scope, query.driver)
            for scope, most in zip(bounds.scopes, bounds.shares, strict=True)
        ]
        return _documents(" UNION ALL ".join(lists), conditions)
    lists = [
        each for scope in bounds.scopes for each in _lists(values, bounds, scope, query.driver)
    ]
    return _documents(_best(lists, bounds.most))


def _best_of_scope(values: _Parameters, bounds: _ListBounds, scope: str, word: str) -> str:
    """Return the best entries of one scope, so that those of others do not crowd them out."""
    return _best(_lists(values, bounds, scope, word), bounds.most)


def _has_word(values: _Parameters, word: str) -> str:
    """Return the condition for what the lists of a word have too."""
    end = "" if len(word) > words.LONGEST_PREFIX else " "
    return (
        f"(d.names LIKE {values.put(f'% {word}%')} OR d.words LIKE {values.put(f'% {word}{end}%')})"
    )


def _exact_matches(values: _Parameters, bounds: _ListBounds, word: str) -> str:
    lists = [_list(values, bounds, scope, word) for scope in bounds.scopes]
    return _documents(_best(lists, bounds.most))


def _best(lists: Sequence[str], most: str) -> str:
    """Return the best entries of several lists: no document is read for one that is not shown."""
    return f"""
        SELECT * FROM (
            SELECT * FROM ({" UNION ALL ".join(lists)}) AS entries ORDER BY 1, 2 LIMIT {most}
        ) AS best
    """


def _documents(entries: str, conditions: Iterable[str] = ()) -> str:
    return f"""
        SELECT {_COLUMNS} FROM ({entries}) AS c
        JOIN search_documents d ON {" AND ".join(["d.number = c.number", *conditions])}
    """


def _lists(values: _Parameters, bounds: _ListBounds, scope: str, word: str) -> list[str]:
    if len(word) > words.LONGEST_PREFIX:
        return [_range(values, bounds, scope, word)]
    exact = [_list(values, bounds, scope, word)] if word else []
    return [*exact, _list(values, bounds, scope, f"{word}*")]


def _list(values: _Parameters, bounds: _ListBounds, scope: str, word: str) -> str:
    return f"""
        SELECT * FROM (
            SELECT rank, number FROM search_words
            WHERE {scope} AND word = {values.put(word)}
              AND (rank, number) > {bounds.position}
            ORDER BY rank, number LIMIT {bounds.most}
        ) AS list
    """


def _range(values: _Parameters, bounds: _ListBounds, scope: str, word: str) -> str:
    """Return the documents with words behind a long prefix; one may have several such words."""
    return f"""
        SELECT rank, number FROM (
            SELECT min(rank) AS rank, number FROM (
                SELECT rank, number FROM search_words
                WHERE {scope} AND {_behind(values, word)}
                ORDER BY word, rank, number LIMIT {MOST_CANDIDATES}
            ) AS entries GROUP BY number
        ) AS behind WHERE (rank, number) > {bounds.position}
    """


def _behind(values: _Parameters, word: str) -> str:
    return f"word >= {values.put(word)} AND word < {values.put(word + _LAST_LETTER)}"


def _candidate(row: Row) -> Candidate:
    return Candidate(
        position=IndexPosition(rank=row["rank"], number=row["number"]),
        kind=SearchKind(row["kind"]),
        target_id=row["target_id"],
        has_text=bool(row["has_text"]),
    )


async def count_words(
    conn: Reader,
    scopes: Mapping[SearchKind, Sequence[str]],
    found: Sequence[str],
    *,
    most: int = MOST_CANDIDATES,
) -> dict[SearchKind, dict[str, int]]:
    """Count the entries of each word, and of what begins with it, in each kind, up to a limit."""
    if not found or not scopes:
        return {kind: {} for kind in scopes}
    values = _Parameters()
    limit = values.put(most)
    conditions = {word: _entries_of(values, word) for word in found}
    counts = []
    for each in scopes.values():
        among = f"scope IN each({values.put(json.dumps(list(each)))})"
        counts += [_count(f"{among} AND {conditions[word]}", limit) for word in found]
    row = await conn.fetch_one(f"SELECT {', '.join(counts)}", *values.all)
    numbers = iter(row or ())
    return {kind: {word: next(numbers) for word in found} for kind in scopes}


def _count(condition: str, limit: str) -> str:
    return f"""
        (SELECT count(*) FROM (
            SELECT 1 FROM search_words WHERE {condition} LIMIT {limit}
        ) AS counted)
    """


def _entries_of(values: _Parameters, word: str) -> str:
    if len(word) > words.LONGEST_PREFIX:
        return _behind(values, word)
    return f"word IN ({values.put(word)}, {values.put(f'{word}*')})"


async def list_similar_words(conn: Reader, scopes: Sequence[str], word: str) -> list[str]:
    """Return words of these scopes that have a spelling in common with a word."""
    rows = await conn.fetch_all(
        """
        SELECT DISTINCT word FROM search_spellings
        WHERE scope IN each($1) AND spelling IN each($2) LIMIT $3
        """,
        json.dumps(list(scopes)), json.dumps(words.spellings(word)), _MOST_SIMILAR,
    )  # fmt: skip
    return [row["word"] for row in rows]
