"""SQL of service accounts: users that belong to an organization. Disabled ones are gone."""

from hublet.accounts.records import Member, Role
from hublet.accounts.store import USER, user_record
from hublet.core.database import Reader

_FROM = """
    FROM users u JOIN memberships m ON m.user_id = u.id AND m.organization_id = u.organization_id
    WHERE u.organization_id = $1 AND u.disabled_at IS NULL
"""


async def list_of(
    conn: Reader, *, organization_id: str, after: str = "", limit: int = 100
) -> list[Member]:
    rows = await conn.fetch_all(
        f"SELECT {USER}, m.role {_FROM} AND u.id > $2 ORDER BY u.id LIMIT $3",
        organization_id, after, limit,
    )  # fmt: skip
    return [Member(user=user_record(row), role=Role(row["role"])) for row in rows]


async def find(conn: Reader, account_id: str, *, organization_id: str) -> Member | None:
    row = await conn.fetch_one(
        f"SELECT {USER}, m.role {_FROM} AND u.id = $2", organization_id, account_id
    )
    return Member(user=user_record(row), role=Role(row["role"])) if row else None
