"""SQL of saved queries, and their records."""

import json
from datetime import datetime

from hublet.core.clock import from_micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.core.dataclasses import dataclass

_COLUMNS = """
    q.id, q.repo_id, q.user_id, u.name AS user_name, q.slug, q.title, q.sql, q.views, q.is_private,
    q.created_at
"""
_FROM = "FROM saved_queries q JOIN users u ON u.id = q.user_id"
_IS_VISIBLE = "(NOT q.is_private OR q.user_id = $2)"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryView:
    """A part of the dataset as a table: `default/train` under the name that the query gives it."""

    key: str
    display_name: str
    view_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedQueryRecord:
    id: str
    repo_id: str
    user_id: str
    user_name: str
    slug: str
    title: str
    sql: str
    views: tuple[QueryView, ...]
    is_private: bool
    created_at: datetime


async def add(conn: Connection, query: SavedQueryRecord) -> None:
    await conn.execute(
        """
        INSERT INTO saved_queries
            (id, repo_id, user_id, slug, title, sql, views, is_private, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        """,
        query.id, query.repo_id, query.user_id, query.slug, query.title, query.sql,
        json.dumps([[view.key, view.display_name, view.view_name] for view in query.views]),
        query.is_private, to_micros(query.created_at),
    )  # fmt: skip


async def find_visible(
    conn: Reader, repo_id: str, name: str, *, user_id: str
) -> SavedQueryRecord | None:
    """Return the query with this id or slug, unless it is a private one of somebody else."""
    row = await conn.fetch_one(
        f"""
        SELECT {_COLUMNS} {_FROM}
        WHERE q.repo_id = $1 AND {_IS_VISIBLE} AND (q.id = $3 OR q.slug = $3)
        """,
        repo_id, user_id, name,
    )  # fmt: skip
    return _record(row) if row else None


async def list_visible(
    conn: Reader, repo_id: str, *, user_id: str, before: str, limit: int
) -> list[SavedQueryRecord]:
    """Return the queries of a dataset that a user sees, the newest first, from before an id on."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS} {_FROM}
        WHERE q.repo_id = $1 AND {_IS_VISIBLE} AND ($3 = '' OR q.id < $3)
        ORDER BY q.id DESC LIMIT $4
        """,
        repo_id, user_id, before, limit,
    )  # fmt: skip
    return [_record(row) for row in rows]


async def counts_of(conn: Reader, repo_id: str, *, user_id: str) -> tuple[int, int]:
    """Return how many queries a dataset has, and how many of them are a user's."""
    row = await conn.fetch_one(
        """
        SELECT count(*) AS everybody, count(CASE WHEN user_id = $2 THEN 1 END) AS own
        FROM saved_queries WHERE repo_id = $1
        """,
        repo_id, user_id,
    )  # fmt: skip
    return (row["everybody"], row["own"]) if row else (0, 0)


async def update(conn: Connection, query: SavedQueryRecord) -> bool:
    """Write title, text and visibility; False when the query is gone."""
    return await conn.execute(
        "UPDATE saved_queries SET title = $2, sql = $3, is_private = $4 WHERE id = $1",
        query.id, query.title, query.sql, query.is_private,
    ) == 1  # fmt: skip


async def remove(conn: Connection, query_id: str) -> None:
    await conn.execute("DELETE FROM saved_queries WHERE id = $1", query_id)


def _record(row: Row) -> SavedQueryRecord:
    return SavedQueryRecord(
        id=row["id"],
        repo_id=row["repo_id"],
        user_id=row["user_id"],
        user_name=row["user_name"],
        slug=row["slug"],
        title=row["title"],
        sql=row["sql"],
        views=tuple(
            QueryView(key=key, display_name=display_name, view_name=view_name)
            for key, display_name, view_name in json.loads(row["views"])
        ),
        is_private=bool(row["is_private"]),
        created_at=from_micros(row["created_at"]),
    )
