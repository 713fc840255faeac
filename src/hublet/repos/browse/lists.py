"""Lists of repositories, with only those that the caller may see, and the cursors of their pages."""

import re
from collections.abc import Collection
from dataclasses import replace

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role
from hublet.core.clock import to_micros
from hublet.core.database import Reader
from hublet.core.paging import InvalidCursor
from hublet.repos import access, list_index_store
from hublet.repos.browse import store
from hublet.repos.browse.records import (
    LeaderboardQuery,
    ListOrder,
    ListPosition,
    ListSort,
    OwnerListPosition,
    RepoFilter,
)
from hublet.repos.evaluations import is_error, rank
from hublet.repos.records import RankedModel, Reach, Repo
from hublet.tokens.errors import ScopeNeeded
from hublet.tokens.records import Caller, Scope

# Of a longer leaderboard the best.
MOST_RANKED = 1000

_LIST_CURSOR = re.compile(r"(\d{1,18}):([0-9a-f]{24})")
_OWNER_LIST_CURSOR = re.compile(r"([a-z]{1,20}):(\d{1,18}):([0-9a-f]{24})")


def write_list_cursor(repo: Repo, sort: ListSort) -> str:
    values = {
        ListSort.creation: to_micros(repo.created_at),
        ListSort.update: to_micros(repo.updated_at),
        ListSort.likes: repo.likes,
        ListSort.downloads: repo.downloads,
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
    reach = await reach_of(conn, caller)
    position = read_list_cursor(after)
    return await store.list_of_type(conn, filters, reach, order=order, after=position, limit=limit)


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
    task_id = query.task_id or await store.find_largest_task(conn, names, reach)
    if task_id is None:
        return []
    found = await store.list_evaluations(
        conn,
        names,
        replace(query, task_id=task_id),
        reach,
        ascending=is_error(task_id),
        limit=MOST_RANKED,
    )
    return rank(found)
