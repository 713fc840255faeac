"""Saved queries of a dataset: who keeps, sees, changes and deletes them."""

import string
from dataclasses import replace

from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.ids import new_object_id, random_text
from hublet.repos import service as repos
from hublet.repos.records import Repo, RepoAddress, RepoType, Right
from hublet.sql import saved_queries_store as store
from hublet.sql.errors import (
    ConsoleNotFound,
    NotYourQuery,
    OnlyAuthorsHide,
    SavedQueryNotFound,
    TooManySavedQueries,
)
from hublet.sql.saved_queries_store import QueryView, SavedQueryRecord
from hublet.tokens.errors import ScopeNeeded
from hublet.tokens.records import Caller, Scope

MAX_SQL = 20_000
MAX_VIEWS = 100
MOST_OF_USER = 100
MOST_OF_DATASET = 1000

_SLUG_LENGTH = 10
_SLUG_LETTERS = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True, kw_only=True)
class NewQuery:
    title: str
    sql: str
    views: tuple[QueryView, ...]
    is_private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryChange:
    """None keeps what is there."""

    title: str | None = None
    sql: str | None = None
    is_private: bool | None = None


async def get_dataset(conn: Reader, caller: Caller | None, address: RepoAddress) -> Repo:
    """Return the dataset that a request names, for a caller who may read its content."""
    repo = await repos.get(conn, caller, address, Right.read)
    if repo.type is not RepoType.dataset:
        raise ConsoleNotFound(repo.type)
    return repo


async def get(conn: Reader, caller: Caller | None, repo: Repo, name: str) -> SavedQueryRecord:
    """Return a query by its id or slug; a private one is found by its author alone."""
    found = await store.find_visible(conn, repo.id, name, user_id=_user_id(caller))
    if found is None:
        raise SavedQueryNotFound(name)
    return found


async def list_of(
    conn: Reader, caller: Caller | None, repo: Repo, *, before: str = "", limit: int
) -> list[SavedQueryRecord]:
    """Return the queries that the caller sees, the newest first; `before` is an id."""
    user_id = _user_id(caller)
    return await store.list_visible(conn, repo.id, user_id=user_id, before=before, limit=limit)


async def save(conn: Connection, caller: Caller, repo: Repo, new: NewQuery) -> SavedQueryRecord:
    """Keep a query under the caller's name, in a dataset that they may read."""
    if not caller.may(Scope.write_discussions, on=repo.owner_id):
        raise ScopeNeeded([Scope.write_discussions])
    await conn.lock(f"saved queries of {repo.id}")
    everybody, own = await store.counts_of(conn, repo.id, user_id=caller.user_id)
    if own >= MOST_OF_USER:
        raise TooManySavedQueries(MOST_OF_USER, "A person has in each dataset")
    if everybody >= MOST_OF_DATASET:
        raise TooManySavedQueries(MOST_OF_DATASET, "A dataset has")
    query = SavedQueryRecord(
        id=new_object_id(),
        repo_id=repo.id,
        user_id=caller.user_id,
        user_name=caller.user_name,
        slug=random_text(_SLUG_LENGTH, _SLUG_LETTERS),
        title=new.title,
        sql=new.sql,
        views=new.views,
        is_private=new.is_private,
        created_at=now(),
    )
    await store.add(conn, query)
    return query


async def may_change(
    conn: Reader, caller: Caller | None, repo: Repo, query: SavedQueryRecord
) -> bool:
    """Tell whether a caller who sees the query may change it."""
    if caller is None:
        return False
    if query.user_id == caller.user_id and caller.may(Scope.write_discussions, on=repo.owner_id):
        return True
    return await repos.may(conn, caller, repo, Right.manage)


async def change(
    conn: Connection, caller: Caller, repo: Repo, name: str, change_: QueryChange
) -> SavedQueryRecord:
    query = await _get_to_change(conn, caller, repo, name)
    if change_.is_private and query.user_id != caller.user_id:
        # Whoever manages the dataset would not see it any more.
        raise OnlyAuthorsHide
    changed = replace(
        query,
        title=query.title if change_.title is None else change_.title,
        sql=query.sql if change_.sql is None else change_.sql,
        is_private=query.is_private if change_.is_private is None else change_.is_private,
    )
    if not await store.update(conn, changed):
        raise SavedQueryNotFound(name)
    return changed


async def delete(conn: Connection, caller: Caller, repo: Repo, name: str) -> None:
    query = await _get_to_change(conn, caller, repo, name)
    await store.remove(conn, query.id)


async def _get_to_change(
    conn: Connection, caller: Caller, repo: Repo, name: str
) -> SavedQueryRecord:
    await conn.lock(f"saved queries of {repo.id}")
    query = await get(conn, caller, repo, name)
    if await may_change(conn, caller, repo, query):
        return query
    if query.user_id == caller.user_id:
        raise ScopeNeeded([Scope.write_discussions])
    raise NotYourQuery


def _user_id(caller: Caller | None) -> str:
    return caller.user_id if caller else ""
