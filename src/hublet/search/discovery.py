"""Discovery: public repositories of the moment, and spaces by what they do."""

from collections.abc import Collection, Sequence

from hublet.core.database import Database, Reader
from hublet.repos import store as repos_store
from hublet.repos.browse import store as lists_store
from hublet.repos.records import Repo, RepoType
from hublet.search import full_text, service
from hublet.search.records import (
    SearchFilters,
    SearchKind,
    SearchQuery,
    TextKind,
    TextQuery,
    TrendingRepo,
    sdk_of,
)
from hublet.tokens.records import Caller

TRENDING_TYPES = (RepoType.model, RepoType.dataset, RepoType.space)
MOST_SPACES = 50
# Before those with another SDK or without the tags are left out.
_MOST_LOOKED_AT = 100


async def list_trending(
    conn: Reader, caller: Caller | None, types: Sequence[RepoType], *, limit: int
) -> list[TrendingRepo]:
    """Return the public repositories of these types with the highest scores, whoever asks."""
    found = [
        repo for each in types for repo in await lists_store.list_trending(conn, each, limit=limit)
    ]
    found.sort(key=lambda repo: (repo.trending_score, repo.likes), reverse=True)
    return await _with_likes(conn, caller, found[:limit])


async def _with_likes(
    conn: Reader, caller: Caller | None, shown: Sequence[Repo]
) -> list[TrendingRepo]:
    liked = set[str]()
    if caller is not None and shown:
        liked = await repos_store.liked_by(conn, caller.user_id, [repo.id for repo in shown])
    return [TrendingRepo(repo=repo, is_liked=repo.id in liked) for repo in shown]


async def search_spaces(
    database: Database,
    caller: Caller | None,
    text: str,
    *,
    tags: Collection[str],
    sdks: Collection[str],
) -> list[TrendingRepo]:
    """Return spaces by names, tags and cards, then those whose whole card or program has the words.

    Without words they are the public ones of the moment.
    """
    async with database.read() as conn:
        if not text.strip():
            found = await lists_store.list_trending(conn, RepoType.space, limit=_MOST_LOOKED_AT)
        else:
            query = SearchQuery(
                text=text,
                kinds=(SearchKind.space,),
                filters=SearchFilters(tags={SearchKind.space: tuple(tags)}),
                limit=_MOST_LOOKED_AT,
            )
            sections = await service.search_kinds(conn, caller, query)
            hits = sections[SearchKind.space].hits
            found = [hit.target for hit in hits if isinstance(hit.target, Repo)]
    if text.strip():
        texts = TextQuery(text=text, kinds=(TextKind.space,), limit=MOST_SPACES)
        page = await full_text.search_texts(database, caller, texts)
        found += [hit.repo for hit in page.hits if hit.repo is not None]
    once = {repo.id: repo for repo in reversed(found) if _is_wanted(repo, tags, sdks)}
    ordered = dict.fromkeys(repo.id for repo in found if repo.id in once)
    async with database.read() as conn:
        return await _with_likes(conn, caller, [once[each] for each in ordered][:MOST_SPACES])


def _is_wanted(repo: Repo, tags: Collection[str], sdks: Collection[str]) -> bool:
    lowered = {tag.lower() for tag in repo.tags}
    has_tags = all(tag.lower() in lowered for tag in tags)
    return has_tags and (not sdks or sdk_of(repo) in sdks)
