"""SQL of resource groups."""

from collections.abc import Sequence

from hublet.accounts.records import ResourceGroupRecord, Role
from hublet.core.clock import from_micros, to_micros
from hublet.core.database import Connection, Reader, Row

_GROUP_COLUMNS = (
    "g.id, g.organization_id, g.name, g.description, g.created_at, g.auto_join_role, "
    "g.auto_join_scope"
)


async def add(conn: Connection, group: ResourceGroupRecord) -> bool:
    """Add a group; False when the organization has one of this name."""
    return await conn.execute(
        """
        INSERT INTO resource_groups (id, organization_id, name, name_key, description, created_at)
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING
        """,
        group.id, group.organization_id, group.name, group.name.casefold(), group.description,
        to_micros(group.created_at),
    ) == 1  # fmt: skip


async def find(conn: Reader, group_id: str, *, organization_id: str) -> ResourceGroupRecord | None:
    row = await conn.fetch_one(
        f"SELECT {_GROUP_COLUMNS} FROM resource_groups g WHERE g.id = $1 AND g.organization_id = $2",
        group_id, organization_id,
    )  # fmt: skip
    return _group_record(row) if row else None


async def find_by_name(
    conn: Reader, name: str, *, organization_id: str
) -> ResourceGroupRecord | None:
    row = await conn.fetch_one(
        f"SELECT {_GROUP_COLUMNS} FROM resource_groups g WHERE g.organization_id = $1 AND g.name_key = $2",
        organization_id, name.casefold(),
    )  # fmt: skip
    return _group_record(row) if row else None


async def list_of(
    conn: Reader, organization_id: str, *, member_id: str = "", after: str = "", limit: int = 100
) -> list[ResourceGroupRecord]:
    """Return groups in the order of their ids; with `member_id` only the groups of this user."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_GROUP_COLUMNS} FROM resource_groups g
        WHERE g.organization_id = $1 AND g.id > $2 AND ($3 = '' OR EXISTS (
            SELECT 1 FROM resource_group_members m
            WHERE m.resource_group_id = g.id AND m.user_id = $3
        ))
        ORDER BY g.id LIMIT $4
        """,
        organization_id, after, member_id, limit,
    )  # fmt: skip
    return [_group_record(row) for row in rows]


async def list_with_counts(
    conn: Reader, organization_id: str, *, limit: int
) -> list[tuple[ResourceGroupRecord, int, int]]:
    """Return groups by name, with how many members and how many repositories each has."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_GROUP_COLUMNS},
            (SELECT count(*) FROM resource_group_members m JOIN users u ON u.id = m.user_id
                WHERE m.resource_group_id = g.id AND u.disabled_at IS NULL) AS members,
            (SELECT count(*) FROM repos r WHERE r.resource_group_id = g.id) AS repos
        FROM resource_groups g WHERE g.organization_id = $1 ORDER BY g.name_key LIMIT $2
        """,
        organization_id, limit,
    )  # fmt: skip
    return [(_group_record(row), row["members"], row["repos"]) for row in rows]


async def update(conn: Connection, group: ResourceGroupRecord) -> None:
    """Raises UniqueViolation when the organization has another group of this name."""
    await conn.execute(
        "UPDATE resource_groups SET name = $1, name_key = $2, description = $3 WHERE id = $4",
        group.name, group.name.casefold(), group.description, group.id,
    )  # fmt: skip


async def set_auto_join(
    conn: Connection, group_id: str, *, role: Role | None, scope: str | None
) -> None:
    await conn.execute(
        "UPDATE resource_groups SET auto_join_role = $2, auto_join_scope = $3 WHERE id = $1",
        group_id, role, scope,
    )  # fmt: skip


async def list_provisioned_names(conn: Reader, organization_id: str) -> list[str]:
    """Return the names of the groups that an identity provider has in an organization."""
    rows = await conn.fetch_all(
        "SELECT display_name FROM scim_groups WHERE organization_id = $1", organization_id
    )
    return [row["display_name"] for row in rows]


async def list_repos(conn: Reader, group_id: str, *, limit: int) -> Sequence[Row]:
    """Return type, name, owner and visibility of the repositories in a group."""
    return await conn.fetch_all(
        """
        SELECT r.type, r.name, r.visibility, o.name AS owner_name FROM repos r
        JOIN organizations o ON o.id = r.owner_id
        WHERE r.resource_group_id = $1 ORDER BY r.id LIMIT $2
        """,
        group_id, limit,
    )  # fmt: skip


async def is_in_use(conn: Reader, group_id: str) -> bool:
    """Tell whether a repository or a collection is in a group."""
    row = await conn.fetch_one(
        """
        SELECT 1 WHERE EXISTS (SELECT 1 FROM repos WHERE resource_group_id = $1)
           OR EXISTS (SELECT 1 FROM collections WHERE resource_group_id = $1)
        """,
        group_id,
    )
    return row is not None


async def remove(conn: Connection, group_id: str) -> None:
    """Remove a group together with its list of members."""
    await conn.execute("DELETE FROM resource_group_members WHERE resource_group_id = $1", group_id)
    await conn.execute("DELETE FROM resource_groups WHERE id = $1", group_id)


def _group_record(row: Row) -> ResourceGroupRecord:
    return ResourceGroupRecord(
        id=row["id"],
        organization_id=row["organization_id"],
        name=row["name"],
        description=row["description"],
        created_at=from_micros(row["created_at"]),
        auto_join_role=Role(row["auto_join_role"]) if row["auto_join_role"] else None,
        auto_join_scope=row["auto_join_scope"],
    )
