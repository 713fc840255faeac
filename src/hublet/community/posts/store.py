"""SQL of posts."""

from hublet.accounts.names import name_key
from hublet.community.threads.records import Thread, ThreadKind
from hublet.community.threads.store import THREAD_COLUMNS, thread_record
from hublet.core.database import Reader

# The second value is a name, or empty for everybody's.
_BY_AUTHOR = "($2 = '' OR t.owner_id = (SELECT account_id FROM names WHERE key = $2))"


async def find(conn: Reader, *, user: str, slug: str) -> Thread | None:
    row = await conn.fetch_one(
        f"""
        SELECT {THREAD_COLUMNS} FROM names n JOIN threads t ON t.owner_id = n.account_id
        WHERE n.key = $1 AND t.kind = $2 AND t.slug = $3
        """,
        name_key(user), ThreadKind.post, slug,
    )  # fmt: skip
    return thread_record(row) if row else None


async def list_newest(conn: Reader, *, author: str, skip: int, limit: int) -> list[Thread]:
    """Return posts, newest first; an empty author stands for everybody."""
    rows = await conn.fetch_all(
        f"""
        SELECT {THREAD_COLUMNS} FROM threads t WHERE t.kind = $1 AND {_BY_AUTHOR}
        ORDER BY t.id DESC LIMIT $3 OFFSET $4
        """,
        ThreadKind.post, name_key(author), limit, skip,
    )  # fmt: skip
    return [thread_record(row) for row in rows]


async def count_of(conn: Reader, *, author: str) -> int:
    count: int = await conn.fetch_value(
        f"SELECT count(*) FROM threads t WHERE t.kind = $1 AND {_BY_AUTHOR}",
        ThreadKind.post, name_key(author),
    )  # fmt: skip
    return count
