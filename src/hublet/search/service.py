"""Search: pages of hits, suggestions while somebody types, and corrections of mistyped words."""

import re
from collections.abc import Sequence
from dataclasses import replace

from hublet.accounts.records import User
from hublet.accounts.users import store as users
from hublet.core.database import Reader
from hublet.core.paging import InvalidCursor, read_cursor, write_cursor
from hublet.search import store, words
from hublet.search.lookup import FEW, Lookup, load, prepare, scan
from hublet.search.records import (
    Candidate,
    IndexPosition,
    SearchHit,
    SearchKind,
    SearchPage,
    SearchQuery,
    SearchSection,
)
from hublet.tokens.records import Caller

# Counts stop here: nobody needs the exact number of a million.
MOST_COUNTED = 101
_MOST_CORRECTIONS = 8
_OF_EACH_KIND = 3
_CURSOR = re.compile(r"(c?):(-?\d{1,6}):(-?\d{1,18})")


async def search(conn: Reader, caller: Caller | None, query: SearchQuery) -> SearchPage:
    """Return a page of hits of all kinds of a query, the best first.

    When nothing is found, the page has the hits of the query with its mistyped words corrected.
    """
    lookup = await prepare(conn, caller, query)
    return await (_next_page if query.cursor else _first_page)(conn, lookup, query)


async def _first_page(conn: Reader, lookup: Lookup, query: SearchQuery) -> SearchPage:
    wanted = max(MOST_COUNTED, query.limit + 1)
    found, suggestion = await _scan_kinds(conn, lookup, wanted=wanted), ""
    is_corrected = False
    if _total(found) < FEW and (corrected := await _correct(conn, lookup)) is not None:
        better = await _scan_kinds(conn, corrected, wanted=wanted)
        # A word that finds nothing for this caller may be of what they must not know of.
        if _total(better) > _total(found):
            suggestion, is_corrected = " ".join(corrected.words), not _total(found)
            found = better if is_corrected else found
    candidates = sorted(
        (each for some in found.values() for each in some),
        key=lambda each: (each.position.rank, each.position.number),
    )
    page = await _page(conn, lookup, query, candidates, is_corrected=is_corrected)
    counts = {kind: min(len(some), MOST_COUNTED) for kind, some in found.items()}
    return replace(page, counts=counts, suggestion=suggestion)


def _total(found: dict[SearchKind, list[Candidate]]) -> int:
    return sum(map(len, found.values()))


async def _next_page(conn: Reader, lookup: Lookup, query: SearchQuery) -> SearchPage:
    is_corrected, after = _read_position(query.cursor)
    if is_corrected:
        lookup = await _correct(conn, lookup) or lookup
    found, end = await scan(conn, lookup, query.kinds, after=after, wanted=query.limit + 1)
    return await _page(conn, lookup, query, found, is_corrected=is_corrected, end=end)


async def _page(
    conn: Reader,
    lookup: Lookup,
    query: SearchQuery,
    found: list[Candidate],
    *,
    is_corrected: bool,
    end: IndexPosition | None = None,
) -> SearchPage:
    shown = found[: query.limit]
    if len(found) > query.limit:
        end = shown[-1].position
    return SearchPage(
        hits=await load(conn, lookup, shown),
        next_cursor=_write_position(end, is_corrected=is_corrected) if end else "",
        is_corrected=is_corrected,
    )


async def _scan_kinds(
    conn: Reader, lookup: Lookup, *, wanted: int
) -> dict[SearchKind, list[Candidate]]:
    return {
        kind: (await scan(conn, lookup, [kind], wanted=wanted))[0] if lookup.is_in(kind) else []
        for kind in lookup.scopes
    }


async def suggest(
    conn: Reader, caller: Caller | None, prefix: str, *, limit: int = 10
) -> list[SearchHit]:
    """Return the first hits for what was typed so far, a few of each kind, the best first."""
    query = SearchQuery(text=prefix, limit=_OF_EACH_KIND)
    sections = await search_kinds(conn, caller, query, count=False)
    hits = [hit for section in sections.values() for hit in section.hits]
    hits.sort(key=lambda hit: (hit.position.rank, hit.position.number))
    return hits[:limit]


async def search_kinds(
    conn: Reader, caller: Caller | None, query: SearchQuery, *, count: bool = True
) -> dict[SearchKind, SearchSection]:
    """Return the first hits of each kind apart; of the corrected query, when there are none."""
    lookup = await prepare(conn, caller, query)
    wanted = MOST_COUNTED if count else query.limit + len(query.exclude)
    found = await _scan_kinds(conn, lookup, wanted=wanted)
    if not _total(found) and (corrected := await _correct(conn, lookup)) is not None:
        found = await _scan_kinds(conn, corrected, wanted=wanted)
    sections = {
        kind: await _section(conn, lookup, query, some[:wanted]) for kind, some in found.items()
    }
    if query.preferred_users and (people := sections.get(SearchKind.user)) is not None:
        sections[SearchKind.user] = await _with_preferred(conn, query, people)
    return sections


async def _section(
    conn: Reader, lookup: Lookup, query: SearchQuery, found: list[Candidate]
) -> SearchSection:
    # Excluded ones make room for others.
    first = found[: query.limit + len(query.exclude)]
    loaded = await load(conn, lookup, first)
    hits = [
        hit for hit in loaded if not query.exclude & {hit.address, f"{hit.kind}s/{hit.target.id}"}
    ]
    count = len(found) - len(first) + len(hits)
    return SearchSection(hits=tuple(hits[: query.limit]), count=count)


async def _with_preferred(
    conn: Reader, query: SearchQuery, section: SearchSection
) -> SearchSection:
    """Put those users first who take part where the query comes from and match it."""
    known = {each.id: each for each in await users.list_by_ids(conn, query.preferred_users)}
    first = [
        SearchHit(kind=SearchKind.user, position=IndexPosition(), target=known[each])
        for each in query.preferred_users
        if each in known and _begins(known[each], query)
    ]
    shown = {hit.target.id for hit in first}
    others = [hit for hit in section.hits if hit.target.id not in shown]
    return replace(section, hits=tuple([*first, *others][: query.limit]))


def _begins(user: User, query: SearchQuery) -> bool:
    names = [*words.split(user.name), *words.split(user.fullname)]
    wanted = words.of_query(query.text)
    matches = all(any(name.startswith(word) for name in names) for word in wanted)
    return matches and not query.exclude & {f"users/{user.name}", f"users/{user.id}"}


async def _correct(conn: Reader, lookup: Lookup) -> Lookup | None:
    """Return the lookup with words that are hardly found one edit better; None: none is."""
    scopes = [scope for some in lookup.scopes.values() for scope in some]
    corrected = []
    for word in lookup.words:
        rare = sum(counts[word] for counts in lookup.counts.values()) < FEW
        mistyped = rare and words.is_correctable(word)
        corrected.append(await _correct_word(conn, scopes, word) if mistyped else word)
    if tuple(corrected) == lookup.words:
        return None
    return await lookup.with_words(conn, tuple(corrected))


async def _correct_word(conn: Reader, scopes: Sequence[str], word: str) -> str:
    """Return the most used word that is one edit away, or the same word."""
    similar = await store.list_similar_words(conn, scopes, word)
    near = [each for each in similar if words.is_one_edit(each, word)][:_MOST_CORRECTIONS]
    if len(near) < 2:  # noqa: PLR2004 - nothing to choose from
        return near[0] if near else word
    counts = await store.count_words(conn, {SearchKind.model: scopes}, near, most=MOST_COUNTED)
    return max(near, key=lambda each: (counts[SearchKind.model][each], each[0] == word[0]))


def _write_position(position: IndexPosition, *, is_corrected: bool) -> str:
    return write_cursor(f"{'c' if is_corrected else ''}:{position.rank}:{position.number}")


def _read_position(cursor: str) -> tuple[bool, IndexPosition]:
    """Return whether the hits are of the corrected query, and the position to go on from."""
    if not cursor:
        return False, IndexPosition()
    match = _CURSOR.fullmatch(read_cursor(cursor))
    if match is None:
        raise InvalidCursor
    return bool(match[1]), IndexPosition(rank=int(match[2]), number=int(match[3]))
