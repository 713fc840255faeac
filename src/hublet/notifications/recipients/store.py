"""SQL of recipients: who watches, takes part, or muted."""

import json
from collections.abc import Iterable

from hublet.community.threads.records import ThreadKind
from hublet.core.database import Reader, Row
from hublet.events import RepoSnapshot
from hublet.notifications.recipients.records import ThreadSubject
from hublet.notifications.records import Involvement

_REPO = """
    r.id AS repo_id, r.type AS repo_type, r.name AS repo_name, r.owner_id AS repo_owner_id,
    r.visibility, r.resource_group_id
"""


async def find_subject(conn: Reader, thread_id: str) -> ThreadSubject | None:
    row = await conn.fetch_one(
        f"""
        SELECT t.kind, t.owner_id, {_REPO} FROM threads t LEFT JOIN repos r ON r.id = t.repo_id
        WHERE t.id = $1
        """,
        thread_id,
    )
    if row is None:
        return None
    return ThreadSubject(
        thread_id=thread_id,
        kind=ThreadKind(row["kind"]),
        owner_id=row["repo_owner_id"] or row["owner_id"],
        repo=_repo_record(row) if row["repo_id"] else None,
    )


async def find_repo(conn: Reader, repo_id: str) -> RepoSnapshot | None:
    row = await conn.fetch_one(f"SELECT {_REPO} FROM repos r WHERE r.id = $1", repo_id)
    return _repo_record(row) if row else None


async def list_candidates(
    conn: Reader, subject: ThreadSubject, *, after: str, limit: int
) -> dict[str, Involvement]:
    """Return the next users, by id, who watch a thread's repository or owner, or are involved.

    The first of all are among the first of each part, so no part is read further than the page
    needs.
    """
    rows = await conn.fetch_all(
        """
        SELECT user_id, max(involvement) AS involvement FROM (
            SELECT * FROM (
                SELECT user_id, 0 AS involvement FROM watches
                WHERE target_id = $2 AND user_id > $4 ORDER BY user_id LIMIT $5
            ) AS watching_the_repo
            UNION ALL
            SELECT * FROM (
                SELECT user_id, 0 AS involvement FROM watches
                WHERE target_id = $3 AND user_id > $4 ORDER BY user_id LIMIT $5
            ) AS watching_the_owner
            UNION ALL
            SELECT * FROM (
                SELECT user_id, CASE WHEN mentioned THEN 2 ELSE 1 END AS involvement
                FROM thread_participants
                WHERE thread_id = $1 AND user_id > $4 ORDER BY user_id LIMIT $5
            ) AS taking_part
            UNION ALL
            SELECT id, 0 FROM users WHERE id = $3 AND id > $4
        ) AS all_of_them
        GROUP BY user_id ORDER BY user_id LIMIT $5
        """,
        subject.thread_id, subject.repo_id or "", subject.owner_id or "", after, limit,
    )  # fmt: skip
    return {row["user_id"]: Involvement(row["involvement"]) for row in rows}


async def list_unmuted(
    conn: Reader, subject: ThreadSubject, user_ids: Iterable[str]
) -> dict[str, bool]:
    """Return those who did not mute the thread, and whether they muted its repository.

    Service accounts and disabled users are left out: nobody reads their inbox.
    """
    rows = await conn.fetch_all(
        """
        SELECT u.id, EXISTS (
            SELECT 1 FROM repo_mutes q WHERE q.repo_id = $2 AND q.user_id = u.id
        ) AS muted_repo
        FROM users u
        WHERE u.id IN each($3) AND u.type = 'user' AND u.disabled_at IS NULL AND NOT EXISTS (
            SELECT 1 FROM thread_mutes q WHERE q.thread_id = $1 AND q.user_id = u.id
        )
        """,
        subject.thread_id, subject.repo_id or "", json.dumps(list(user_ids)),
    )  # fmt: skip
    return {row["id"]: bool(row["muted_repo"]) for row in rows}


async def list_private_repos(
    conn: Reader, organization_id: str, *, user_id: str, after: str, limit: int
) -> list[RepoSnapshot]:
    """Return the next private repositories of an organization that are in a user's inbox."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_REPO} FROM (
            SELECT DISTINCT facet FROM notification_counts WHERE user_id = $2 AND facet > $3
        ) AS c JOIN repos r ON r.id = c.facet
        WHERE r.owner_id = $1 AND r.visibility <> 'public' ORDER BY r.id LIMIT $4
        """,
        organization_id, user_id, after, limit,
    )  # fmt: skip
    return [_repo_record(row) for row in rows]


def _repo_record(row: Row) -> RepoSnapshot:
    return RepoSnapshot(
        id=row["repo_id"],
        type=row["repo_type"],
        name=row["repo_name"],
        owner_id=row["repo_owner_id"],
        private=row["visibility"] != "public",
        resource_group_id=row["resource_group_id"],
    )
