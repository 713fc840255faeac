"""SQL that keeps the names of repositories in the index of parts.

Public repositories of a type are a scope, and those of each owner that are not public are another.
"""

from collections.abc import Collection

from hublet.accounts import name_parts_store
from hublet.accounts.names import name_key
from hublet.core.database import Connection, Row
from hublet.repos.names import repo_name_key
from hublet.repos.records import Repo, RepoType, Visibility

_NAMES = """
    SELECT r.id, r.type, r.owner_id, r.visibility, n.key || '/' || r.name_key AS text
    FROM repos r JOIN names n ON n.account_id = r.owner_id
"""


def public_scope(type: RepoType) -> str:  # noqa: A002 - the column
    return str(type)


def private_scope(type: RepoType, owner_id: str) -> str:  # noqa: A002 - the column
    return f"{type}/{owner_id}"


async def add(conn: Connection, repo: Repo) -> None:
    """Add the name of a new repository."""
    scope = _scope_of(repo.type, repo.owner_id, repo.visibility)
    await name_parts_store.add(conn, scope, [_text_of(repo)], id=repo.id)


async def remove(conn: Connection, repo_id: str) -> None:
    """Remove the name of a repository that will be deleted."""
    if (row := await _find(conn, repo_id)) is not None:
        scope = _scope_of(row["type"], row["owner_id"], row["visibility"])
        parts = name_parts_store.parts_of([row["text"]])
        await name_parts_store.remove(conn, [scope], parts, id=repo_id)


async def move(conn: Connection, before: Repo) -> None:
    """Replace the name of a repository, which has another name or owner now."""
    parts = name_parts_store.parts_of([_text_of(before)])
    scopes = _scopes_of(before.type, before.owner_id)
    await name_parts_store.remove(conn, scopes, parts, id=before.id)
    await _add_current(conn, before.id)


async def publish_or_hide(conn: Connection, repo_id: str) -> None:
    """Put the name of a repository into the scope of the visibility that it has now."""
    if (row := await _find(conn, repo_id)) is not None:
        parts = name_parts_store.parts_of([row["text"]])
        scopes = _scopes_of(row["type"], row["owner_id"])
        await name_parts_store.remove(conn, scopes, parts, id=repo_id)
        await _add_current(conn, repo_id)


async def _add_current(conn: Connection, repo_id: str) -> None:
    if (row := await _find(conn, repo_id)) is not None:
        scope = _scope_of(row["type"], row["owner_id"], row["visibility"])
        await name_parts_store.add(conn, scope, [row["text"]], id=repo_id)


async def add_existing(conn: Connection, *, after: str, limit: int) -> str | None:
    """Add the names of some repositories, the smallest ids first; return the last id, or None at the end."""
    rows = await conn.fetch_all(f"{_NAMES} WHERE r.id > $1 ORDER BY r.id LIMIT $2", after, limit)
    await name_parts_store.add_all(
        conn,
        [
            (_scope_of(row["type"], row["owner_id"], row["visibility"]), [row["text"]], row["id"])
            for row in rows
        ],
    )
    return rows[-1]["id"] if rows else None


async def _find(conn: Connection, repo_id: str) -> Row | None:
    """Lock a repository and return what is to be known of its name."""
    return await conn.fetch_one(f"{_NAMES} WHERE r.id = $1 /* lock r */", repo_id)


def _text_of(repo: Repo) -> str:
    return f"{name_key(repo.owner_name)}/{repo_name_key(repo.name)}"


def _scope_of(type: RepoType, owner_id: str, visibility: str) -> str:  # noqa: A002 - the column
    is_public = visibility == Visibility.public
    return public_scope(type) if is_public else private_scope(type, owner_id)


def _scopes_of(type: RepoType, owner_id: str) -> Collection[str]:  # noqa: A002 - the column
    return public_scope(type), private_scope(type, owner_id)
