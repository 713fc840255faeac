"""SQL of threads, comments and participants."""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import msgspec

from hublet.accounts.names import name_key
from hublet.community.threads.records import (
    Comment,
    CommentRevision,
    Participant,
    Participation,
    Thread,
    ThreadChange,
    ThreadKind,
    ThreadStatus,
)
from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row

THREAD_COLUMNS = """
    t.id, t.kind, t.title, t.author_id, t.owner_id, t.repo_id, t.number, t.is_pull_request,
    t.status, t.pinned, t.base, t.merge_commit_id, t.paper_id, t.slug, t.body, t.details,
    t.comment_count, t.created_at, t.updated_at
"""
# Beside those of the thread `t` and its repository `r`: what changes with all that its page shows.
VERSION_COLUMNS = """
    r.updated_at AS repo_updated_at,
    (SELECT count(*) FROM comments c WHERE c.thread_id = t.id AND c.hidden) AS hidden_count,
    (SELECT max(c.edited_at) FROM comments c WHERE c.thread_id = t.id) AS last_edited_at,
    (SELECT count(*) FROM comment_emoji e WHERE e.thread_id = t.id) AS emoji_count,
    (SELECT max(e.id) FROM comment_emoji e WHERE e.thread_id = t.id) AS last_emoji
"""
_VERSIONED = (
    "id", "updated_at", "comment_count", "repo_updated_at", "hidden_count", "last_edited_at",
    "emoji_count", "last_emoji",
)  # fmt: skip
# A list of blogs shows no texts, and they are long.
_COLUMNS_WITHOUT_BODY = THREAD_COLUMNS.replace("t.body", "NULL AS body")
COMMENT_COLUMNS = """
    c.id, c.thread_id, c.author_id, c.parent_id, c.raw, c.hidden, c.hidden_by, c.created_at,
    c.edited_at
"""
# The threads of one kind, of one owner by name; an empty name matches every owner.
_OF_OWNER = """
    t.kind = $1 AND ($2 = '' OR t.owner_id = (SELECT account_id FROM names WHERE key = $2))
"""


async def add(conn: Connection, thread: Thread) -> bool:
    """Add a thread; False when its paper id, slug or number is taken."""
    return await conn.execute(
        """
        INSERT INTO threads
            (id, kind, title, author_id, owner_id, repo_id, number, is_pull_request, status,
             base, paper_id, slug, body, details, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15)
        ON CONFLICT DO NOTHING
        """,
        thread.id, thread.kind, thread.title, thread.author_id, thread.owner_id, thread.repo_id,
        thread.number, thread.is_pull_request, thread.status, thread.base, thread.paper_id,
        thread.slug, thread.body, None if thread.details is None else json.dumps(thread.details),
        to_micros(thread.created_at),
    ) == 1  # fmt: skip


async def find(conn: Reader, thread_id: str) -> Thread | None:
    row = await conn.fetch_one(f"SELECT {THREAD_COLUMNS} FROM threads t WHERE t.id = $1", thread_id)
    return thread_record(row) if row else None


async def list_by_ids(conn: Reader, thread_ids: Iterable[str]) -> list[Thread]:
    rows = await conn.fetch_all(
        f"SELECT {THREAD_COLUMNS} FROM threads t WHERE t.id IN each($1)",
        json.dumps(list(thread_ids)),
    )
    return [thread_record(row) for row in rows]


async def list_ids(conn: Reader, *, after: str, limit: int) -> list[str]:
    """Return the ids of all threads, the smallest first."""
    rows = await conn.fetch_all(
        "SELECT id FROM threads WHERE id > $1 ORDER BY id LIMIT $2", after, limit
    )
    return [row["id"] for row in rows]


async def find_by_slug(conn: Reader, kind: ThreadKind, *, owner: str, slug: str) -> Thread | None:
    """Return a post or blog by the name of its owner and its slug."""
    row = await conn.fetch_one(
        f"""
        SELECT {THREAD_COLUMNS} FROM names n JOIN threads t ON t.owner_id = n.account_id
        WHERE n.key = $1 AND t.kind = $2 AND t.slug = $3
        """,
        name_key(owner), kind, slug,
    )  # fmt: skip
    return thread_record(row) if row else None


async def list_newest(
    conn: Reader,
    kind: ThreadKind,
    *,
    owner: str,
    limit: int,
    after: str = "",
    skip: int = 0,
) -> list[Thread]:
    """Return the posts or blogs of an owner, or with an empty name of all, newest first.

    The list continues after the thread `after`, or after as many as `skip`.
    """
    columns = _COLUMNS_WITHOUT_BODY if kind is ThreadKind.blog else THREAD_COLUMNS
    rows = await conn.fetch_all(
        f"""
        SELECT {columns} FROM threads t WHERE {_OF_OWNER} AND ($3 = '' OR t.id < $3)
        ORDER BY t.id DESC LIMIT $4 OFFSET $5
        """,
        kind, name_key(owner), after, limit, skip,
    )  # fmt: skip
    return [thread_record(row) for row in rows]


async def count_of(conn: Reader, kind: ThreadKind, *, owner: str) -> int:
    count: int = await conn.fetch_value(
        f"SELECT count(*) FROM threads t WHERE {_OF_OWNER}", kind, name_key(owner)
    )
    return count


async def update(conn: Connection, thread: Thread) -> None:
    """Write the columns of a thread that can change."""
    await conn.execute(
        """
        UPDATE threads SET title = $2, status = $3, pinned = $4, merge_commit_id = $5, body = $6,
            details = $7, updated_at = $8
        WHERE id = $1
        """,
        thread.id, thread.title, thread.status, thread.pinned, thread.merge_commit_id,
        thread.body, None if thread.details is None else json.dumps(thread.details), micros(),
    )  # fmt: skip


async def remove(conn: Connection, thread_id: str) -> None:
    await conn.execute("DELETE FROM threads WHERE id = $1", thread_id)


async def add_comment(conn: Connection, comment: Comment) -> None:
    await conn.execute(
        """
        INSERT INTO comments (id, thread_id, author_id, parent_id, raw, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        """,
        comment.id, comment.thread_id, comment.author_id, comment.parent_id, comment.raw,
        to_micros(comment.created_at),
    )  # fmt: skip
    await conn.execute(
        "UPDATE threads SET comment_count = comment_count + 1, updated_at = $2 WHERE id = $1",
        comment.thread_id, micros(),
    )  # fmt: skip


async def find_comment(conn: Reader, comment_id: str, *, thread_id: str) -> Comment | None:
    row = await conn.fetch_one(
        f"SELECT {COMMENT_COLUMNS} FROM comments c WHERE c.id = $1 AND c.thread_id = $2",
        comment_id, thread_id,
    )  # fmt: skip
    return comment_record(row) if row else None


async def list_comments(
    conn: Reader, thread_id: str, *, after: str = "", limit: int = 10_000
) -> list[Comment]:
    rows = await conn.fetch_all(
        f"""
        SELECT {COMMENT_COLUMNS} FROM comments c WHERE c.thread_id = $1 AND c.id > $2
        ORDER BY c.id LIMIT $3
        """,
        thread_id, after, limit,
    )  # fmt: skip
    return [comment_record(row) for row in rows]


async def set_comment_text(conn: Connection, *, before: Comment, after: Comment) -> None:
    """Replace the text of a comment; the text before is stored as a version."""
    await conn.execute(
        """
        INSERT INTO comment_versions (comment_id, number, author_id, raw, written_at)
        SELECT $1, count(*) + 1, $2, $3, $4 FROM comment_versions WHERE comment_id = $1
        """,
        before.id, before.author_id, before.raw, to_micros(before.edited_at or before.created_at),
    )  # fmt: skip
    await conn.execute(
        "UPDATE comments SET raw = $2, edited_at = $3 WHERE id = $1",
        after.id, after.raw, to_micros(after.edited_at or after.created_at),
    )  # fmt: skip


async def set_comment_hidden(conn: Connection, comment_id: str, *, by: str) -> None:
    await conn.execute(
        "UPDATE comments SET hidden = TRUE, hidden_by = $2 WHERE id = $1", comment_id, by
    )


async def list_revisions(conn: Reader, thread_id: str) -> dict[str, list[CommentRevision]]:
    """Return the former texts of the comments of a thread, by comment."""
    rows = await conn.fetch_all(
        """
        SELECT v.comment_id, v.author_id, v.raw, v.written_at
        FROM comment_versions v JOIN comments c ON c.id = v.comment_id
        WHERE c.thread_id = $1 ORDER BY v.comment_id, v.number
        """,
        thread_id,
    )
    versions: dict[str, list[CommentRevision]] = {}
    for row in rows:
        version = CommentRevision(
            author_id=row["author_id"], raw=row["raw"], written_at=from_micros(row["written_at"])
        )
        versions.setdefault(row["comment_id"], []).append(version)
    return versions


async def add_change(conn: Connection, change: ThreadChange) -> None:
    await conn.execute(
        """
        INSERT INTO thread_changes (id, thread_id, type, author_id, data, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        """,
        change.id, change.thread_id, change.type, change.author_id, json.dumps(change.data),
        to_micros(change.created_at),
    )  # fmt: skip


async def list_changes(conn: Reader, thread_id: str) -> list[ThreadChange]:
    rows = await conn.fetch_all(
        """
        SELECT id, thread_id, type, author_id, data, created_at FROM thread_changes
        WHERE thread_id = $1 ORDER BY id
        """,
        thread_id,
    )
    return [
        ThreadChange(
            id=row["id"],
            thread_id=row["thread_id"],
            type=row["type"],
            author_id=row["author_id"],
            data=json.loads(row["data"]),
            created_at=from_micros(row["created_at"]),
        )
        for row in rows
    ]


async def add_participations(
    conn: Connection, thread_id: str, parts: Mapping[str, Participation]
) -> None:
    """Add how users take part in a thread to what is stored of them."""
    for part in Participation:
        users = [user_id for user_id, has in parts.items() if has is part]
        await conn.execute_many(
            f"""
            INSERT INTO thread_participants (thread_id, user_id, {part}, since)
            VALUES ($1, $2, TRUE, $3)
            ON CONFLICT (thread_id, user_id) DO UPDATE SET {part} = TRUE
            """,
            [(thread_id, user_id, micros()) for user_id in users],
        )


async def list_participants(conn: Reader, thread_id: str) -> list[Participant]:
    rows = await conn.fetch_all(
        """
        SELECT user_id, opened, commented, changed, mentioned FROM thread_participants
        WHERE thread_id = $1 ORDER BY since, user_id
        """,
        thread_id,
    )
    return [
        Participant(user_id=row["user_id"], parts=frozenset(p for p in Participation if row[p]))
        for row in rows
    ]


async def set_muted(conn: Connection, thread_id: str, *, user_id: str, muted: bool) -> None:
    if muted:
        await conn.execute(
            """
            INSERT INTO thread_mutes (thread_id, user_id, muted_at) VALUES ($1, $2, $3)
            ON CONFLICT DO NOTHING
            """,
            thread_id, user_id, micros(),
        )  # fmt: skip
    else:
        await conn.execute(
            "DELETE FROM thread_mutes WHERE thread_id = $1 AND user_id = $2", thread_id, user_id
        )


async def list_muted(conn: Reader, thread_id: str) -> set[str]:
    """Return the ids of the users who muted a thread."""
    rows = await conn.fetch_all("SELECT user_id FROM thread_mutes WHERE thread_id = $1", thread_id)
    return {row["user_id"] for row in rows}


async def find_users_by_name(conn: Reader, names: Iterable[str]) -> dict[str, str]:
    """Return the ids of those names (in lower case) that belong to users who are not disabled."""
    rows = await conn.fetch_all(
        """
        SELECT n.key, u.id FROM names n JOIN users u ON u.id = n.account_id
        WHERE n.key IN each($1) AND u.disabled_at IS NULL
        """,
        msgspec.json.encode(list(names)).decode(),
    )
    return {row["key"]: row["id"] for row in rows}


async def suggest_users(
    conn: Reader, beginning: str, *, thread_repo_id: str, limit: int
) -> list[str]:
    """Return names that begin like this, those who take part in the repository's threads first."""
    rows = await conn.fetch_all(
        """
        SELECT u.name, EXISTS (
            SELECT 1 FROM thread_participants p JOIN threads t ON t.id = p.thread_id
            WHERE p.user_id = u.id AND t.repo_id = $2
        ) AS takes_part
        FROM names n JOIN users u ON u.id = n.account_id
        WHERE n.key >= $1 AND n.key < $1 || '~' AND u.disabled_at IS NULL
        ORDER BY takes_part DESC, n.key LIMIT $3
        """,
        name_key(beginning), thread_repo_id, limit,
    )  # fmt: skip
    return [row["name"] for row in rows]


async def versions_of(conn: Reader, thread_ids: Sequence[str]) -> dict[str, int]:
    """Return a number for each thread that changes with all that its page shows.

    What git says of a pull request changes with the repository.
    """
    rows = await conn.fetch_all(
        f"""
        SELECT t.id, t.updated_at, t.comment_count, {VERSION_COLUMNS}
        FROM threads t LEFT JOIN repos r ON r.id = t.repo_id WHERE t.id IN each($1)
        """,
        json.dumps(list(thread_ids)),
    )
    return {row["id"]: version_of(row) for row in rows}


def version_of(row: Row) -> int:
    """Return the version from the columns of a thread and those of `VERSION_COLUMNS`."""
    return zlib.crc32(repr([row[name] for name in _VERSIONED]).encode())


def thread_record(row: Row) -> Thread:
    values: dict[str, Any] = {field.name: row[field.name] for field in fields(Thread)}
    return Thread(
        **values
        | {
            "kind": ThreadKind(row["kind"]),
            "status": ThreadStatus(row["status"]) if row["status"] else None,
            "is_pull_request": bool(row["is_pull_request"]),
            "pinned": bool(row["pinned"]),
            "details": json.loads(row["details"]) if row["details"] else None,
            "created_at": from_micros(row["created_at"]),
            "updated_at": from_micros(row["updated_at"]),
        }
    )


def comment_record(row: Row) -> Comment:
    values: dict[str, Any] = {field.name: row[field.name] for field in fields(Comment)}
    return Comment(
        **values
        | {
            "hidden": bool(row["hidden"]),
            "created_at": from_micros(row["created_at"]),
            "edited_at": from_micros(row["edited_at"]) if row["edited_at"] else None,
        }
    )
