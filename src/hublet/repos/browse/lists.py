"""Lists of repositories, with only those that the caller may see, and the cursors of their pages."""

import re
from collections.abc import Collection
from dataclasses import replace

from hublet.accounts import name_parts_store
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role
from hublet.core.clock import to_micros
from hublet.core.database import Reader
from hublet.core.paging import InvalidCursor
from hublet.repos import access, list_index_store
from hublet.repos import store as repos_store
from hublet.repos.browse import leaderboard_store, list_index, store
from hublet.repos.browse.records import (
    LeaderboardQuery,
    LinkFilter,
    ListOrder,
    ListPosition,
    ListSort,
    OwnerListPosition,
    ParameterRange,
    RepoFilter,
)
from hublet.repos.evaluations import is_error, rank
from hublet.repos.name_index_store import private_scope, public_scope
from hublet.repos.names import repo_name_key
from hublet.repos.records import LinkKind, RankedModel, Reach, Repo, RepoAddress, RepoType
from hublet.tokens.errors import ScopeNeeded
from hublet.tokens.records import Caller, Scope

# Of a longer leaderboard the best.
MOST_RANKED = 1000

_LIST_CURSOR = re.compile(r"(\d{1,18}):([0-9a-f]{24})")
_OWNER_LIST_CURSOR = re.compile(r"([a-z]{1,20}):(\d{1,18}):([0-9a-f]{24})")

# What links of these kinds lead to.
_LINKED = {
    LinkKind.model: RepoType.model,
    LinkKind.dataset: RepoType.dataset,
    LinkKind.base_model: RepoType.model,
}
# So many repositories are read and sorted for a page. What more than these match is looked for
# along the order of the list: of a million repositories, every five hundredth is one of them.
_MOST_READ = 2000


def write_list_cursor(repo: Repo, sort: ListSort) -> str:
    values = {
        ListSort.creation: to_micros(repo.created_at),
        ListSort.update: to_micros(repo.updated_at),
        ListSort.likes: repo.likes,
        ListSort.downloads: repo.downloads,
        ListSort.trend: repo.trending_score,
    }
    return f"{values[sort]}:{repo.id}"


def read_list_cursor(text: str) -> ListPosition | None:
    """Return None at the start of a list; refuse what `write_list_cursor` did not write."""
    if not text:
        return None
    match = _LIST_CURSOR.fullmatch(text)
    if match is None:
        raise InvalidCursor
    return ListPosition(value=int(match[1]), repo_id=match[2])


def write_owner_list_cursor(repo: Repo) -> str:
    return f"{repo.type}:{to_micros(repo.created_at)}:{repo.id}"


def read_owner_list_cursor(text: str) -> OwnerListPosition:
    """Return the start of a list for no text; refuse what `write_owner_list_cursor` did not write."""
    if not text:
        return OwnerListPosition()
    match = _OWNER_LIST_CURSOR.fullmatch(text)
    if match is None:
        raise InvalidCursor
    return OwnerListPosition(type=match[1], value=int(match[2]), repo_id=match[3])


async def list_repos(
    conn: Reader,
    caller: Caller | None,
    filters: RepoFilter,
    *,
    order: ListOrder,
    after: str = "",
    limit: int = 100,
) -> list[Repo]:
    """Return repositories of a type that the caller may see; `after` is a list cursor."""
    position = read_list_cursor(after)
    if filters.is_served:
        return []
    reach = await reach_of(conn, caller)
    filters = await _narrow(conn, await _with_former_names(conn, filters))
    filters = await _narrow_by_name(conn, filters, reach)
    return await store.list_of_type(conn, filters, reach, order=order, after=position, limit=limit)


async def _with_former_names(conn: Reader, filters: RepoFilter) -> RepoFilter:
    """Let links also match the names that a public repository had when cards were written."""
    links = [
        replace(link, targets=await _names_of(conn, link)) if link.kind in _LINKED else link
        for link in filters.links
    ]
    return replace(filters, links=tuple(links))


async def _names_of(conn: Reader, link: LinkFilter) -> tuple[str, ...]:
    names = list(link.targets)
    for target in link.targets:
        namespace, slash, name = target.partition("/")
        address = RepoAddress(type=_LINKED[link.kind], namespace=namespace, name=name)
        if slash and (repo := await repos_store.find_public(conn, address)) is not None:
            names += (await list_index_store.target_keys_of(conn, [repo]))[repo.id]
    return tuple(dict.fromkeys(names))


async def _narrow(conn: Reader, filters: RepoFilter) -> RepoFilter:
    """Return the filter with the repositories that match one part of it, if these are few."""
    tags = (LinkFilter(kind=LinkKind.tag, targets=(tag.casefold(),)) for tag in filters.tags)
    parts: list[LinkFilter | ParameterRange] = [*filters.links, *tags]
    if filters.parameters is not None:
        parts.append(filters.parameters)
    # Those of one owner are few, and have an index.
    if not parts or filters.author or not await list_index.is_filled(conn):
        return filters
    for part in parts:
        ids = await _matching_ids(conn, filters.type, part)
        if len(ids) <= _MOST_READ:
            return replace(filters, candidate_ids=ids)
    return filters


async def _narrow_by_name(conn: Reader, filters: RepoFilter, reach: Reach | None) -> RepoFilter:
    """Return the filter with the repositories whose name may match, if these are few.

    Public ones and those within reach are looked for apart: how many others hide changes nothing,
    neither what is found nor how. Where they are many, they are looked for along the order of the list,
    where a page is soon full.
    """
    texts = [repo_name_key(text) for text in (*filters.words, filters.name_part) if text]
    if not texts or filters.candidate_ids is not None:
        return filters
    if not await name_parts_store.is_filled(conn):
        return filters
    public = await name_parts_store.find_ids(conn, [public_scope(filters.type)], texts)
    owners = set[str]() if reach is None else {*reach.readable, *reach.where_created}
    scopes = [private_scope(filters.type, owner) for owner in sorted(owners)]
    private = await name_parts_store.find_ids(conn, scopes, texts) if scopes else None
    return replace(filters, public_ids=public, private_ids=private)


async def _matching_ids(
    conn: Reader,
    type: RepoType,  # noqa: A002 - the column
    part: LinkFilter | ParameterRange,
) -> tuple[str, ...]:
    if isinstance(part, ParameterRange):
        return await list_index_store.list_ids_by_parameters(
            conn, type, least=part.least, most=part.most, limit=_MOST_READ + 1
        )
    return await list_index_store.list_linked_ids(
        conn, type, part.kind, part.targets, limit=_MOST_READ + 1
    )


async def reach_of(conn: Reader, caller: Caller | None) -> Reach | None:
    """Return the private repositories that a caller may see; None: none at all."""
    if caller is None:
        return None
    return access.private_reach_of(caller, await store.roles_of_user(conn, caller.user_id))


async def list_visible(
    conn: Reader, caller: Caller | None, repo_ids: Collection[str]
) -> dict[str, Repo]:
    """Return those of these repositories that the caller may see, by id."""
    if not repo_ids:
        return {}
    found = await store.list_visible(conn, repo_ids, await reach_of(conn, caller))
    return {repo.id: repo for repo in found}


async def get_owner_id(conn: Reader, caller: Caller, organization: str | None) -> str:
    """Return the id of the caller, or of an organization that they are a member of."""
    owner_id = caller.user_id
    if organization is not None:
        found = await organizations.get_as(
            conn, organization, user_id=caller.user_id, needed=Role.read
        )
        owner_id = found.id
    if not caller.may(Scope.read_repos, on=owner_id):
        raise ScopeNeeded([Scope.read_repos])
    return owner_id


async def list_of_owner(
    conn: Reader, caller: Caller, owner_id: str, *, after: str, limit: int
) -> list[Repo]:
    """Return the repositories of an owner from `get_owner_id`, of all types."""
    reach = await reach_of(conn, caller)
    if reach is None:
        return []
    position = read_owner_list_cursor(after)
    return await store.list_of_owner(conn, owner_id, reach, after=position, limit=limit)


async def list_leaderboard(
    conn: Reader, caller: Caller | None, dataset: Repo, query: LeaderboardQuery
) -> list[RankedModel]:
    """Rank the models that state a result for a task of a dataset, of those that the caller sees."""
    reach = await reach_of(conn, caller)
    names = (await list_index_store.target_keys_of(conn, [dataset]))[dataset.id]
    task_id = query.task_id or await leaderboard_store.find_largest_task(conn, names, reach)
    if task_id is None:
        return []
    found = await leaderboard_store.list_evaluations(
        conn,
        names,
        replace(query, task_id=task_id),
        reach,
        ascending=is_error(task_id),
        limit=MOST_RANKED,
    )
    return rank(found)
