"""SQL of discussions: their numbers, lists, commits and refs."""

import json
from collections.abc import Collection, Iterable

from hublet.accounts.names import name_key
from hublet.accounts.organizations.store import account_record
from hublet.accounts.records import Account
from hublet.community.discussions.records import (
    OPEN_STATUSES,
    DiscussionFilters,
    DiscussionSort,
    ThreadPage,
    ThreadReference,
)
from hublet.community.threads.records import (
    Comment,
    CommentRevision,
    Participant,
    Participation,
    Thread,
    ThreadChange,
    ThreadEntries,
    ThreadStatus,
)
from hublet.community.threads.store import (
    COMMENT_COLUMNS,
    THREAD_COLUMNS,
    VERSION_COLUMNS,
    comment_record,
    thread_record,
    version_of,
)
from hublet.core.clock import from_micros
from hublet.core.database import Connection, Reader, Row, like_pattern

_FROM_MATCHING = """
    FROM threads t
    WHERE t.repo_id = $1
        AND ($2 = 'all' OR t.is_pull_request = ($2 = 'pull_request'))
        AND ($3 = '' OR t.author_id = (SELECT n.account_id FROM names n WHERE n.key = $3))
        AND ($4 = '' OR lower(t.title) LIKE lower($4) ESCAPE '~')
"""
_ORDER = {
    DiscussionSort.created: "t.number DESC",
    DiscussionSort.trending: "t.updated_at DESC, t.number DESC",
    DiscussionSort.reactions: """
        (SELECT count(DISTINCT e.user_id) FROM comment_emoji e WHERE e.thread_id = t.id) DESC,
        t.number DESC
    """,
}


async def next_number(conn: Connection, repo_id: str) -> int | None:
    """Take the next number of the repository: unique, and without gaps.

    None when the repository was deleted meanwhile.
    """
    number: int | None = await conn.fetch_value(
        "UPDATE repos SET last_number = last_number + 1 WHERE id = $1 RETURNING last_number",
        repo_id,
    )
    return number


async def find(conn: Reader, repo_id: str, number: int) -> Thread | None:
    row = await conn.fetch_one(
        f"SELECT {THREAD_COLUMNS} FROM threads t WHERE t.repo_id = $1 AND t.number = $2",
        repo_id,
        number,
    )
    return thread_record(row) if row else None


async def find_page(conn: Reader, repo_id: str, number: int, *, user_id: str) -> ThreadPage | None:
    """Return a discussion with what its page shows besides, for a user or, without id, for nobody."""
    row = await conn.fetch_one(
        f"""
        SELECT {THREAD_COLUMNS}, {VERSION_COLUMNS},
            (SELECT count(*) FROM thread_mutes m
             WHERE m.thread_id = t.id AND m.user_id = $3) AS mutes,
            (SELECT count(*) FROM thread_references f WHERE f.thread_id = t.id) AS reference_count,
            (SELECT count(*) FROM threads o
             WHERE o.repo_id = t.repo_id AND o.status IN each($4)) AS open_count
        FROM threads t LEFT JOIN repos r ON r.id = t.repo_id
        WHERE t.repo_id = $1 AND t.number = $2
        """,
        repo_id, number, user_id, json.dumps(sorted(OPEN_STATUSES)),
    )  # fmt: skip
    if row is None:
        return None
    return ThreadPage(
        thread=thread_record(row),
        version=version_of(row),
        is_muted=bool(row["mutes"]),
        open_count=row["open_count"],
        has_references=row["reference_count"] > 0,
    )


async def list_of(
    conn: Reader, repo_id: str, filters: DiscussionFilters, *, start: int, limit: int
) -> list[Thread]:
    """Return the discussions that match, from a position on; pinned ones come first."""
    rows = await conn.fetch_all(
        f"""
        SELECT {THREAD_COLUMNS} {_FROM_MATCHING} AND t.status IN each($5)
        ORDER BY t.pinned DESC, {_ORDER[filters.sort]} LIMIT $6 OFFSET $7
        """,
        repo_id, *_filter_values(filters), json.dumps(sorted(filters.statuses)), limit, start,
    )  # fmt: skip
    return [thread_record(row) for row in rows]


async def count_of(
    conn: Reader, repo_id: str, filters: DiscussionFilters
) -> dict[ThreadStatus, int]:
    """Count the discussions that match, by status; the filter of the status does not apply."""
    rows = await conn.fetch_all(
        f"SELECT t.status, count(*) AS count {_FROM_MATCHING} GROUP BY t.status",
        repo_id, *_filter_values(filters),
    )  # fmt: skip
    return {ThreadStatus(row["status"]): row["count"] for row in rows}


def _filter_values(filters: DiscussionFilters) -> tuple[str, str, str]:
    kinds = {None: "all", True: "pull_request", False: "discussion"}
    author = name_key(filters.author) if filters.author else ""
    return (
        kinds[filters.is_pull_request],
        author,
        like_pattern(filters.search) if filters.search else "",
    )


async def list_commits(conn: Reader, thread_id: str) -> set[str]:
    """Return the ids of the commits in the thread's history."""
    rows = await conn.fetch_all(
        "SELECT data FROM thread_changes WHERE thread_id = $1 AND type = 'commit'", thread_id
    )
    return {json.loads(row["data"])["oid"] for row in rows}


async def lock_ref(conn: Connection, repo_id: str, *, ref: str, sha: str) -> bool:
    """Lock a ref until the transaction ends; False when it points to another commit already."""
    return await conn.execute(
        "UPDATE repo_refs SET updated_at = updated_at WHERE repo_id = $1 AND name = $2 AND sha = $3",
        repo_id, ref, sha,
    ) == 1  # fmt: skip


async def list_entries(conn: Reader, thread_id: str) -> ThreadEntries:
    """Return the comments of a thread, their former texts and its changes, oldest first."""
    rows = await conn.fetch_all(
        f"""
        SELECT 'comment' AS entry, 0 AS place, {COMMENT_COLUMNS} FROM comments c
        WHERE c.thread_id = $1
        UNION ALL
        SELECT 'revision', v.number, c.id, c.thread_id, v.author_id, NULL, v.raw, FALSE, NULL,
            v.written_at, NULL
        FROM comments c JOIN comment_versions v ON v.comment_id = c.id WHERE c.thread_id = $1
        UNION ALL
        SELECT d.type, 0, d.id, d.thread_id, d.author_id, NULL, d.data, FALSE, NULL, d.created_at,
            NULL
        FROM thread_changes d WHERE d.thread_id = $1
        ORDER BY id, place
        """,
        thread_id,
    )
    entries = ThreadEntries(comments=[], revisions={}, changes=[])
    for row in rows:
        if row["entry"] == "comment":
            entries.comments.append(comment_record(row))
        elif row["entry"] == "revision":
            entries.revisions.setdefault(row["id"], []).append(_revision_record(row))
        else:
            entries.changes.append(_change_record(row))
    return entries


def _revision_record(row: Row) -> CommentRevision:
    return CommentRevision(
        author_id=row["author_id"], raw=row["raw"], written_at=from_micros(row["created_at"])
    )


def _change_record(row: Row) -> ThreadChange:
    return ThreadChange(
        id=row["id"],
        thread_id=row["thread_id"],
        type=row["entry"],
        author_id=row["author_id"],
        data=json.loads(row["raw"]),
        created_at=from_micros(row["created_at"]),
    )


async def find_people(
    conn: Reader, thread_id: str, account_ids: Iterable[str | None]
) -> tuple[dict[str, Account], list[Participant]]:
    """Return these accounts and all who take part, by id; and how they do, in this order."""
    known = sorted({account_id for account_id in account_ids if account_id is not None})
    rows = await conn.fetch_all(
        """
        SELECT u.id, u.name, u.fullname, u.type, p.since, p.opened, p.commented, p.changed,
            p.mentioned
        FROM thread_participants p JOIN users u ON u.id = p.user_id WHERE p.thread_id = $1
        UNION ALL
        SELECT id, name, fullname, type, NULL, FALSE, FALSE, FALSE, FALSE FROM users
        WHERE id IN each($2)
        UNION ALL
        SELECT id, name, fullname, 'org', NULL, FALSE, FALSE, FALSE, FALSE FROM organizations
        WHERE id IN each($2)
        """,
        thread_id, json.dumps(known),
    )  # fmt: skip
    active = sorted(
        (row for row in rows if row["since"] is not None), key=lambda row: (row["since"], row["id"])
    )
    return {row["id"]: account_record(row) for row in rows}, [
        Participant(user_id=row["id"], parts=frozenset(p for p in Participation if row[p]))
        for row in active
    ]


async def remove_references(conn: Connection, comment_id: str) -> None:
    await conn.execute("DELETE FROM thread_references WHERE comment_id = $1", comment_id)


async def add_references(conn: Connection, comment_id: str, thread_ids: Iterable[str]) -> None:
    """Write which threads a comment names."""
    await conn.execute_many(
        "INSERT INTO thread_references (thread_id, comment_id) VALUES ($1, $2)",
        [(thread_id, comment_id) for thread_id in thread_ids],
    )


async def list_references(conn: Reader, thread_id: str, *, limit: int) -> list[ThreadReference]:
    """Return the comments that name a thread and are not hidden, oldest first."""
    rows = await conn.fetch_all(
        f"""
        SELECT {THREAD_COLUMNS}, c.id AS comment_id, c.created_at AS mentioned_at,
            u.name AS author_name
        FROM thread_references f JOIN comments c ON c.id = f.comment_id
        JOIN threads t ON t.id = c.thread_id JOIN users u ON u.id = c.author_id
        WHERE f.thread_id = $1 AND NOT c.hidden ORDER BY c.id LIMIT $2
        """,
        thread_id, limit,
    )  # fmt: skip
    return [
        ThreadReference(
            comment_id=row["comment_id"],
            author=row["author_name"],
            thread=thread_record(row),
            created_at=from_micros(row["mentioned_at"]),
        )
        for row in rows
    ]


async def list_openings(conn: Reader, thread_ids: Collection[str]) -> dict[str, Comment]:
    """Return the comments that open these discussions, by discussion."""
    rows = await conn.fetch_all(
        f"""
        SELECT {COMMENT_COLUMNS} FROM threads t JOIN comments c
            ON c.id = (SELECT min(o.id) FROM comments o WHERE o.thread_id = t.id)
        WHERE t.id IN each($1)
        """,
        json.dumps(list(thread_ids)),
    )
    return {row["thread_id"]: comment_record(row) for row in rows}


async def list_comments_by_ids(conn: Reader, comment_ids: Collection[str]) -> list[Comment]:
    """Return comments of threads of any kind."""
    rows = await conn.fetch_all(
        f"SELECT {COMMENT_COLUMNS} FROM comments c WHERE c.id IN each($1)",
        json.dumps(list(comment_ids)),
    )
    return [comment_record(row) for row in rows]


async def list_comment_ids(conn: Reader, *, after: str, limit: int) -> list[str]:
    """Return the ids of all comments, the smallest first."""
    rows = await conn.fetch_all(
        "SELECT id FROM comments WHERE id > $1 ORDER BY id LIMIT $2", after, limit
    )
    return [row["id"] for row in rows]


async def list_participants_in_repo(conn: Reader, repo_id: str, *, limit: int) -> list[str]:
    """Return the ids of those who take part in a repository's discussions, the last first."""
    rows = await conn.fetch_all(
        """
        SELECT p.user_id FROM thread_participants p JOIN threads t ON t.id = p.thread_id
        WHERE t.repo_id = $1 GROUP BY p.user_id ORDER BY max(p.since) DESC LIMIT $2
        """,
        repo_id, limit,
    )  # fmt: skip
    return [row["user_id"] for row in rows]
