"""SQL of the administration: users and organizations by a part of their names."""

from collections.abc import Iterable

import msgspec

from hublet.accounts.records import Organization, Role, User
from hublet.accounts.users.store import (
    ACCOUNTS_ONLY,
    ORGANIZATION_COLUMNS,
    USER_COLUMNS,
    organization_record,
    user_record,
)
from hublet.core import totals
from hublet.core.database import Reader, like_pattern

# By the word that a filter has for them.
_STATES = {
    "active": "u.disabled_at IS NULL",
    "disabled": "u.disabled_at IS NOT NULL",
    "administrators": "u.is_admin",
}


async def search_users(
    conn: Reader, words: str, *, state: str = "", after: str = "", limit: int = 100
) -> list[User]:
    """Return users whose name, full name or an address has the words in it, oldest first."""
    rows = await conn.fetch_all(
        f"""
        SELECT {USER_COLUMNS} FROM users u
        WHERE u.id > $1 AND {ACCOUNTS_ONLY} AND {_STATES.get(state, "TRUE")} AND (
            lower(u.name) LIKE $2 ESCAPE '~' OR lower(u.fullname) LIKE $2 ESCAPE '~' OR EXISTS (
                SELECT 1 FROM emails e WHERE e.user_id = u.id AND e.address_key LIKE $2 ESCAPE '~'
            )
        )
        ORDER BY u.id LIMIT $3
        """,
        after, like_pattern(words.lower()), limit,
    )  # fmt: skip
    return [user_record(row) for row in rows]


async def list_memberships(
    conn: Reader, user_ids: Iterable[str]
) -> dict[str, list[tuple[str, Role]]]:
    """Return the organizations of these users, by name, each with the role there."""
    rows = await conn.fetch_all(
        """
        SELECT m.user_id, o.name, m.role
        FROM memberships m JOIN organizations o ON o.id = m.organization_id
        WHERE m.user_id IN each($1) ORDER BY o.name
        """,
        msgspec.json.encode(list(user_ids)).decode(),
    )
    found: dict[str, list[tuple[str, Role]]] = {}
    for row in rows:
        found.setdefault(row["user_id"], []).append((row["name"], Role(row["role"])))
    return found


async def search_organizations(
    conn: Reader, words: str, *, after: str = "", limit: int = 100
) -> list[tuple[Organization, int]]:
    """Return organizations whose name has the words in it, oldest first, and their members."""
    rows = await conn.fetch_all(
        f"""
        SELECT {ORGANIZATION_COLUMNS} FROM organizations o
        WHERE o.id > $1
          AND (lower(o.name) LIKE $2 ESCAPE '~' OR lower(o.fullname) LIKE $2 ESCAPE '~')
        ORDER BY o.id LIMIT $3
        """,
        after, like_pattern(words.lower()), limit,
    )  # fmt: skip
    members = await totals.read_many(conn, ["members"], [row["id"] for row in rows])
    return [(organization_record(row), members.get(("members", row["id"]), 0)) for row in rows]
