"""SQL of community blogs."""

from hublet.accounts.names import name_key
from hublet.accounts.records import Role
from hublet.community.threads.records import Thread, ThreadKind
from hublet.community.threads.store import THREAD_COLUMNS, thread_record
from hublet.core.database import Reader

# A list shows no texts, and they are long.
_CARD_COLUMNS = THREAD_COLUMNS.replace("t.body", "NULL AS body")


async def find(conn: Reader, *, owner: str, slug: str) -> Thread | None:
    row = await conn.fetch_one(
        f"""
        SELECT {THREAD_COLUMNS} FROM names n JOIN threads t ON t.owner_id = n.account_id
        WHERE n.key = $1 AND t.kind = $2 AND t.slug = $3
        """,
        name_key(owner), ThreadKind.blog, slug,
    )  # fmt: skip
    return thread_record(row) if row else None


async def list_newest(conn: Reader, *, owner: str, after: str, limit: int) -> list[Thread]:
    """Return blogs, newest first; an empty owner stands for everybody."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_CARD_COLUMNS} FROM threads t WHERE t.kind = $1
          AND ($2 = '' OR t.owner_id = (SELECT account_id FROM names WHERE key = $2))
          AND ($3 = '' OR t.id < $3)
        ORDER BY t.id DESC LIMIT $4
        """,
        ThreadKind.blog, name_key(owner), after, limit,
    )  # fmt: skip
    return [thread_record(row) for row in rows]


async def role_in(conn: Reader, organization_id: str, *, user_id: str) -> Role | None:
    role = await conn.fetch_value(
        "SELECT role FROM memberships WHERE organization_id = $1 AND user_id = $2",
        organization_id, user_id,
    )  # fmt: skip
    return Role(role) if role else None
