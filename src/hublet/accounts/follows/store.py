"""SQL of who follows whom. Disabled users neither count nor show."""

from hublet.accounts.records import User
from hublet.accounts.store import USER, user_record
from hublet.core.clock import micros
from hublet.core.database import Connection, Reader


async def add(conn: Connection, *, follower_id: str, account_id: str) -> bool:
    """Add a follower; False when it is one already."""
    return await conn.execute(
        """
        INSERT INTO follows (follower_id, account_id, created_at) VALUES ($1, $2, $3)
        ON CONFLICT DO NOTHING
        """,
        follower_id, account_id, micros(),
    ) == 1  # fmt: skip


async def remove(conn: Connection, *, follower_id: str, account_id: str) -> None:
    await conn.execute(
        "DELETE FROM follows WHERE follower_id = $1 AND account_id = $2", follower_id, account_id
    )


async def exists(conn: Reader, *, follower_id: str, account_id: str) -> bool:
    found = await conn.fetch_value(
        "SELECT 1 FROM follows WHERE follower_id = $1 AND account_id = $2",
        follower_id, account_id,
    )  # fmt: skip
    return found is not None


async def count_followers(conn: Reader, *, account_id: str) -> int:
    count: int = await conn.fetch_value(
        """
        SELECT count(*) FROM follows f JOIN users u ON u.id = f.follower_id
        WHERE f.account_id = $1 AND u.disabled_at IS NULL
        """,
        account_id,
    )
    return count


async def count_followed_users(conn: Reader, *, follower_id: str) -> int:
    count: int = await conn.fetch_value(
        """
        SELECT count(*) FROM follows f JOIN users u ON u.id = f.account_id
        WHERE f.follower_id = $1 AND u.disabled_at IS NULL
        """,
        follower_id,
    )
    return count


async def list_followers(
    conn: Reader, *, account_id: str, after: str = "", limit: int = 100
) -> list[User]:
    rows = await conn.fetch_all(
        f"""
        SELECT {USER} FROM follows f JOIN users u ON u.id = f.follower_id
        WHERE f.account_id = $1 AND f.follower_id > $2 AND u.disabled_at IS NULL
        ORDER BY f.follower_id LIMIT $3
        """,
        account_id, after, limit,
    )  # fmt: skip
    return [user_record(row) for row in rows]


async def list_followed_users(
    conn: Reader, *, follower_id: str, after: str = "", limit: int = 100
) -> list[User]:
    rows = await conn.fetch_all(
        f"""
        SELECT {USER} FROM follows f JOIN users u ON u.id = f.account_id
        WHERE f.follower_id = $1 AND f.account_id > $2 AND u.disabled_at IS NULL
        ORDER BY f.account_id LIMIT $3
        """,
        follower_id, after, limit,
    )  # fmt: skip
    return [user_record(row) for row in rows]
