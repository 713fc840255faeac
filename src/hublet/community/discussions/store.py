"""SQL of discussions: their numbers, lists, commits and refs."""

import json

from hublet.accounts.names import name_key
from hublet.community.discussions.records import DiscussionFilters, DiscussionSort
from hublet.community.threads.records import Thread, ThreadStatus
from hublet.community.threads.store import THREAD_COLUMNS, like_pattern, thread_record
from hublet.core.database import Connection, Reader

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
