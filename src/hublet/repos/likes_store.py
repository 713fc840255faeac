"""SQL of likes. Disabled users do not show."""

from hublet.accounts.records import User
from hublet.accounts.users.store import USER_COLUMNS, user_record
from hublet.core.clock import from_micros, micros
from hublet.core.database import Connection, Reader
from hublet.repos.records import UserLike
from hublet.repos.store import COLUMNS, OWNER, record


async def add(conn: Connection, repo_id: str, *, user_id: str) -> bool:
    """Add a like and count it; False when the user liked the repository before."""
    added = await conn.execute(
        """
        INSERT INTO likes (repo_id, user_id, created_at) VALUES ($1, $2, $3)
        ON CONFLICT DO NOTHING
        """,
        repo_id, user_id, micros(),
    ) == 1  # fmt: skip
    if added:
        await conn.execute("UPDATE repos SET likes = likes + 1 WHERE id = $1", repo_id)
    return added


async def remove(conn: Connection, repo_id: str, *, user_id: str) -> None:
    removed = await conn.execute(
        "DELETE FROM likes WHERE repo_id = $1 AND user_id = $2", repo_id, user_id
    )
    if removed:
        await conn.execute("UPDATE repos SET likes = likes - 1 WHERE id = $1", repo_id)


async def list_likers(
    conn: Reader, repo_id: str, *, after: str = "", limit: int = 100
) -> list[User]:
    rows = await conn.fetch_all(
        f"""
        SELECT {USER_COLUMNS} FROM likes l JOIN users u ON u.id = l.user_id
        WHERE l.repo_id = $1 AND l.user_id > $2 AND u.disabled_at IS NULL
        ORDER BY l.user_id LIMIT $3
        """,
        repo_id, after, limit,
    )  # fmt: skip
    return [user_record(row) for row in rows]


async def list_of_user(
    conn: Reader, user_id: str, *, before: tuple[int, str], limit: int = 100
) -> list[UserLike]:
    """Return the public repositories that a user likes, the newest like first."""
    rows = await conn.fetch_all(
        f"""
        SELECT {COLUMNS}, l.created_at AS liked_at
        FROM likes l JOIN repos r ON r.id = l.repo_id {OWNER}
        WHERE l.user_id = $1 AND (l.created_at, l.repo_id) < ($2, $3)
          AND r.visibility = 'public'
        ORDER BY l.created_at DESC, l.repo_id DESC LIMIT $4
        """,
        user_id, before[0], before[1], limit,
    )  # fmt: skip
    return [UserLike(repo=record(row), created_at=from_micros(row["liked_at"])) for row in rows]
