"""SQL that finds what a filter names."""

import json

from hublet.accounts.names import name_key
from hublet.community.threads.records import ThreadKind
from hublet.core.database import Reader
from hublet.notifications.inbox.seeing import REPO, ROLES, may_see
from hublet.repos.names import repo_name_key
from hublet.repos.records import RepoType


async def repos_named(
    conn: Reader, full_name: str, types: list[RepoType], *, user_id: str
) -> list[str]:
    """Return the repositories of these types that have or had this name, and the user may see."""
    owner, _, name = full_name.partition("/")
    rows = await conn.fetch_all(
        f"""
        SELECT {REPO} FROM names n JOIN repos r ON r.owner_id = n.account_id {ROLES}
        WHERE n.key = $2 AND r.name_key = $3 AND r.type IN each($4)
        UNION ALL
        SELECT {REPO} FROM names n JOIN repo_redirects d ON d.owner_id = n.account_id
        JOIN repos r ON r.id = d.repo_id {ROLES}
        WHERE n.key = $2 AND d.name_key = $3 AND d.type IN each($4)
        """,
        user_id, name_key(owner), repo_name_key(name), json.dumps(types),
    )  # fmt: skip
    return [row["repo_id"] for row in rows if may_see(row, user_id)]


async def account_named(conn: Reader, name: str) -> list[str]:
    rows = await conn.fetch_all("SELECT account_id FROM names WHERE key = $1", name_key(name))
    return [row["account_id"] for row in rows]


async def paper_named(conn: Reader, name: str) -> list[str]:
    """Return the thread of a paper that has this id here, or this arXiv id."""
    rows = await conn.fetch_all(
        "SELECT id FROM threads WHERE kind = $1 AND (id = $2 OR paper_id = $3)",
        ThreadKind.paper, name.lower(), name,
    )  # fmt: skip
    return [row["id"] for row in rows]


async def blogs_named(conn: Reader, name: str) -> list[str]:
    """Return the blogs that have this id or this slug; each author has slugs of their own."""
    rows = await conn.fetch_all(
        "SELECT id FROM threads WHERE kind = $1 AND (id = $2 OR slug = $3)",
        ThreadKind.blog, name.lower(), name,
    )  # fmt: skip
    return [row["id"] for row in rows]
