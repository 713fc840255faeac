"""SQL of who is in a resource group."""

from hublet.accounts.records import Member, Role
from hublet.accounts.store import USER, user_record
from hublet.core.database import Connection, Reader


async def role_of(conn: Reader, group_id: str, *, user_id: str) -> Role | None:
    role = await conn.fetch_value(
        "SELECT role FROM resource_group_members WHERE resource_group_id = $1 AND user_id = $2",
        group_id, user_id,
    )  # fmt: skip
    return Role(role) if role else None


async def set_member(conn: Connection, group_id: str, *, user_id: str, role: Role) -> None:
    await conn.execute(
        """
        INSERT INTO resource_group_members (resource_group_id, user_id, role) VALUES ($1, $2, $3)
        ON CONFLICT (resource_group_id, user_id) DO UPDATE SET role = excluded.role
        """,
        group_id, user_id, role,
    )  # fmt: skip


async def remove_member(conn: Connection, group_id: str, *, user_id: str) -> None:
    await conn.execute(
        "DELETE FROM resource_group_members WHERE resource_group_id = $1 AND user_id = $2",
        group_id, user_id,
    )  # fmt: skip


async def list_groups(conn: Reader, *, organization_id: str, user_id: str) -> list[tuple[str, str]]:
    """Return id and name of each group of an organization that a user is in."""
    rows = await conn.fetch_all(
        """
        SELECT g.id, g.name FROM resource_group_members m
        JOIN resource_groups g ON g.id = m.resource_group_id
        WHERE m.user_id = $1 AND g.organization_id = $2 ORDER BY g.id
        """,
        user_id, organization_id,
    )  # fmt: skip
    return [(row["id"], row["name"]) for row in rows]


async def list_members(conn: Reader, group_id: str) -> list[Member]:
    """Return members by id; those who are disabled are not shown."""
    rows = await conn.fetch_all(
        f"""
        SELECT {USER}, m.role FROM resource_group_members m JOIN users u ON u.id = m.user_id
        WHERE m.resource_group_id = $1 AND u.disabled_at IS NULL ORDER BY m.user_id
        """,
        group_id,
    )
    return [Member(user=user_record(row), role=Role(row["role"])) for row in rows]
