"""Lookup: candidates of the index, reduced to what a caller may see, then loaded.

The index tells where to look; whether a repository is shown is decided by the rule of lists, on the
repository as it is. So an index that is late can hide something, never show it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hublet.accounts.names import name_key
from hublet.accounts.organizations import store as organizations
from hublet.accounts.users import store as users
from hublet.community.collections import store as collections
from hublet.community.collections import views as collection_views
from hublet.community.threads import store as threads
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.repos.browse import lists
from hublet.repos.browse import store as lists_store
from hublet.repos.browse.records import RepoFilter
from hublet.repos.records import Reach, RepoType
from hublet.search import documents, store, words
from hublet.search.records import (
    REPO_KINDS,
    Candidate,
    IndexPosition,
    SearchFilters,
    SearchHit,
    SearchKind,
    SearchQuery,
    SearchTarget,
)
from hublet.search.store import WordQuery
from hublet.tokens.records import Caller

# With fewer hits, a mistyped word is looked for.
FEW = 3
# How many documents are looked at until a page is full, in steps: the first is nearly always enough.
_FURTHER_STEPS = (500, 1500)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """The words of a query, the scopes that its caller reads, and how often both meet."""

    words: tuple[str, ...]
    filters: SearchFilters
    # Of private repositories, and of private collections.
    reach: Reach | None
    collection_reach: Reach | None
    scopes: Mapping[SearchKind, tuple[str, ...]]
    counts: Mapping[SearchKind, Mapping[str, int]]

    def is_in(self, kind: SearchKind) -> bool:
        """Whether documents of this kind may have all words."""
        counts = self.counts[kind]
        return all(counts[word] for word in self.words) or bool(counts.get(self.whole))

    @property
    def whole(self) -> str:
        return words.joined(self.words)

    def word_query(self, kinds: Sequence[SearchKind]) -> WordQuery:
        """Return the query with its rarest word as the one whose list is read."""
        if not self.words:
            return WordQuery()
        driver = min(
            self.words,
            key=lambda word: (sum(self.counts[kind][word] for kind in kinds), -len(word)),
        )
        others = tuple(word for word in self.words if word != driver)
        return WordQuery(driver=driver, others=others, whole=self.whole)

    async def with_words(self, conn: Reader, found: tuple[str, ...]) -> "Lookup":
        """Return the same lookup for other words."""
        counted = dict.fromkeys([*found, words.joined(found)]) if found else {}
        # Of one word it matters only whether there are a few; of several, which is the rarest.
        most = store.MOST_CANDIDATES if len(found) > 1 else FEW
        counts = await store.count_words(conn, self.scopes, list(counted), most=most)
        return replace(self, words=found, counts=counts)


async def prepare(conn: Reader, caller: Caller | None, query: SearchQuery) -> Lookup:
    reach = await lists.reach_of(conn, caller)
    groups = await lists_store.list_group_ids(conn, reach) if reach else []
    collected = (await collection_views.viewer_of(conn, caller)).collections
    collected_groups = await lists_store.list_group_ids(conn, collected) if collected else []
    found = words.of_query(query.text)
    # The name of an owner is in the index too, and makes few candidates of many.
    owner = [word for word in words.of_query(query.filters.namespace) if word not in found]
    lookup = Lookup(
        words=(),
        filters=query.filters,
        reach=reach,
        collection_reach=collected,
        scopes={
            kind: _scopes_of(kind, collected, collected_groups)
            if kind is SearchKind.collection
            else _scopes_of(kind, reach, groups)
            for kind in query.kinds
        },
        counts={},
    )
    return await lookup.with_words(conn, (*found, *owner))


def _scopes_of(kind: SearchKind, reach: Reach | None, group_ids: Iterable[str]) -> tuple[str, ...]:
    if reach is None or kind not in (*REPO_KINDS, SearchKind.collection):
        return (kind.letter,)
    owners = dict.fromkeys([*reach.readable, *reach.where_created])
    return (
        kind.letter,
        *(documents.owner_scope(kind.letter, owner) for owner in owners),
        *(documents.group_scope(kind.letter, group) for group in group_ids),
    )


async def scan(
    conn: Reader,
    lookup: Lookup,
    kinds: Iterable[SearchKind],
    *,
    after: IndexPosition | None = None,
    wanted: int,
) -> tuple[list[Candidate], IndexPosition | None]:
    """Return at least so many hits, if there are so many near the position, and where to go on."""
    there = [kind for kind in kinds if lookup.is_in(kind)]
    scopes = [scope for kind in there for scope in lookup.scopes[kind]]
    query, position, found = lookup.word_query(there), after or IndexPosition(), list[Candidate]()
    for size in (wanted, *_FURTHER_STEPS):
        batch = await store.list_candidates(conn, scopes, query, after=position, limit=size)
        found += await _visible(conn, lookup, batch)
        if len(batch) < size:
            return found, None
        position = batch[-1].position
        if len(found) >= wanted:
            break
    return found, position


async def _visible(
    conn: Reader, lookup: Lookup, candidates: Sequence[Candidate]
) -> list[Candidate]:
    """Leave out repositories that the caller may not see, and what the filters do not want."""
    ids = _ids_by_kind(candidates)
    gated: dict[str, bool] = {}
    for kind in REPO_KINDS:
        for among, filters in _repo_filters(kind, lookup.filters, ids.get(kind, ())):
            gated |= await lists_store.list_visible_ids(conn, among, lookup.reach, filters)
    collected = await _visible_collections(conn, lookup, ids.get(SearchKind.collection, ()))
    return [
        each
        for each in candidates
        if (
            # A gate that was set a moment ago hides what stands in the text.
            each.target_id in gated and not (gated[each.target_id] and each.has_text)
            if each.kind in REPO_KINDS
            else each.target_id in collected
            if each.kind is SearchKind.collection
            else _is_wanted(each, lookup.filters)
        )
    ]


async def _visible_collections(conn: Reader, lookup: Lookup, ids: Sequence[str]) -> set[str]:
    if not ids:
        return set()
    found = await collections.list_visible(conn, ids, lookup.collection_reach)
    owner = name_key(lookup.filters.namespace)
    return {each.id for each in found if not owner or name_key(each.owner.name) == owner}


def _is_wanted(candidate: Candidate, filters: SearchFilters) -> bool:
    if candidate.kind is not SearchKind.organization:
        return True
    wanted = filters.organization_ids
    return candidate.target_id not in filters.without_organizations and (
        wanted is None or candidate.target_id in wanted
    )


def _ids_by_kind(candidates: Iterable[Candidate]) -> dict[SearchKind, list[str]]:
    ids = defaultdict[SearchKind, list[str]](list)
    for each in candidates:
        ids[each.kind].append(each.target_id)
    return ids


def _repo_filters(
    kind: SearchKind, filters: SearchFilters, ids: Sequence[str]
) -> Iterator[tuple[Sequence[str], RepoFilter]]:
    """Return what is asked of repositories, one after the other: those of any answer are wanted."""
    if not ids:
        return
    every = filters.tags.get(kind, ())
    for tag in filters.any_tags.get(kind) or ("",):
        wanted = RepoFilter(
            type=RepoType(kind),
            author=filters.namespace,
            tags=(*every, tag) if tag else every,
            gated=filters.gated,
            owner_ids=filters.owner_ids,
        )
        yield ids, wanted
        if granted := [each for each in ids if each in filters.repo_ids]:
            yield granted, replace(wanted, owner_ids=None)


async def load(
    conn: Reader, lookup: Lookup, candidates: Sequence[Candidate]
) -> tuple[SearchHit, ...]:
    ids = _ids_by_kind(candidates)
    repo_ids = [each for kind in REPO_KINDS for each in ids.get(kind, ())]
    targets: dict[str, SearchTarget] = {}
    if repo_ids:
        targets |= _by_id(await lists_store.list_visible(conn, repo_ids, lookup.reach))
    if user_ids := ids.get(SearchKind.user):
        targets |= _by_id(await users.list_by_ids(conn, user_ids))
    if organization_ids := ids.get(SearchKind.organization):
        targets |= _by_id(await organizations.list_by_ids(conn, organization_ids))
    if collection_ids := ids.get(SearchKind.collection):
        reach = lookup.collection_reach
        targets |= _by_id(await collections.list_visible(conn, collection_ids, reach))
    if thread_ids := [each.target_id for each in candidates if each.target_id not in targets]:
        targets |= _by_id(await threads.list_by_ids(conn, thread_ids))
    return tuple(
        SearchHit(kind=each.kind, position=each.position, target=targets[each.target_id])
        for each in candidates
        if each.target_id in targets
    )


def _by_id(
    found: Iterable[SearchTarget],
) -> dict[str, SearchTarget]:
    return {each.id: each for each in found}
