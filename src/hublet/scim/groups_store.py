"""SQL of provisioned groups and their members."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hublet.core import totals
from hublet.core.database import Connection, Reader, Row
from hublet.scim.records import (
    IN_DIRECTORY,
    Directory,
    ListQuery,
    ProvisionedGroup,
    ProvisionedMember,
    SqlCondition,
    Stamp,
    comparison_key,
)

_GROUP_COLUMNS = "s.id, s.display_name, s.external_id, s.created_at, s.updated_at, s.version"


async def add(conn: Connection, directory: Directory, group: ProvisionedGroup) -> None:
    await conn.execute(
        """
        INSERT INTO scim_groups
            (organization_id, managed, id, display_name, display_name_key, external_id,
             created_at, updated_at, version)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        """,
        *directory.sql_values, group.id, group.display_name, comparison_key(group.display_name),
        group.external_id, group.stamp.created_at, group.stamp.updated_at, group.stamp.version,
    )  # fmt: skip


async def update(conn: Connection, group: ProvisionedGroup) -> None:
    await conn.execute(
        """
        UPDATE scim_groups SET display_name = $2, display_name_key = $3, external_id = $4,
            updated_at = $5, version = $6
        WHERE id = $1
        """,
        group.id, group.display_name, comparison_key(group.display_name), group.external_id,
        group.stamp.updated_at, group.stamp.version,
    )  # fmt: skip


async def remove(conn: Connection, group_id: str) -> None:
    """Remove a group together with its list of members."""
    await conn.execute("DELETE FROM scim_groups WHERE id = $1", group_id)


async def add_members(conn: Connection, group_id: str, scim_user_ids: Iterable[str]) -> None:
    await conn.execute_many(
        "INSERT INTO scim_members (group_id, scim_user_id) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        [(group_id, each) for each in scim_user_ids],
    )


async def remove_members(conn: Connection, group_id: str, scim_user_ids: Iterable[str]) -> None:
    await conn.execute(
        "DELETE FROM scim_members WHERE group_id = $1 AND scim_user_id IN each($2)",
        group_id, json.dumps(list(scim_user_ids)),
    )  # fmt: skip


async def list_member_ids(conn: Reader, group_id: str) -> frozenset[str]:
    rows = await conn.fetch_all(
        "SELECT scim_user_id FROM scim_members WHERE group_id = $1", group_id
    )
    return frozenset(row["scim_user_id"] for row in rows)


async def count_members(conn: Reader, group_id: str) -> int:
    count: int = await conn.fetch_value(
        "SELECT count(*) FROM scim_members WHERE group_id = $1", group_id
    )
    return count


async def list_known_users(
    conn: Reader, directory: Directory, scim_user_ids: Iterable[str]
) -> set[str]:
    """Return the ids among these that are users of the directory."""
    rows = await conn.fetch_all(
        f"SELECT s.id FROM scim_users s WHERE {IN_DIRECTORY} AND s.id IN each($3)",
        *directory.sql_values, json.dumps(list(scim_user_ids)),
    )  # fmt: skip
    return {row["id"] for row in rows}


async def find(
    conn: Reader, directory: Directory, group_id: str, *, with_members: bool = True
) -> ProvisionedGroup | None:
    group = await _find(conn, directory, "s.id = $3", group_id)
    if group is None or not with_members:
        return group
    return (await _with_members(conn, [group]))[0]


async def find_by_display_name(
    conn: Reader, directory: Directory, name: str
) -> ProvisionedGroup | None:
    return await _find(conn, directory, "s.display_name_key = $3", comparison_key(name))


async def find_by_external_id(
    conn: Reader, directory: Directory, value: str
) -> ProvisionedGroup | None:
    return await _find(conn, directory, "s.external_id = $3", value)


async def _find(
    conn: Reader, directory: Directory, condition: str, value: str
) -> ProvisionedGroup | None:
    row = await conn.fetch_one(
        f"SELECT {_GROUP_COLUMNS} FROM scim_groups s WHERE {IN_DIRECTORY} AND {condition}",
        *directory.sql_values, value,
    )  # fmt: skip
    return _group_record(row) if row else None


async def list_of(
    conn: Reader, directory: Directory, query: ListQuery, *, with_members: bool
) -> list[ProvisionedGroup]:
    """Return one page; a subquery reads its ids from an index, so that no other rows are read."""
    last = len(query.condition.values) + 2
    rows = await conn.fetch_all(
        f"""
        SELECT {_GROUP_COLUMNS} FROM scim_groups s
        JOIN (
            SELECT s.id FROM scim_groups s WHERE {IN_DIRECTORY} AND {query.condition.sql}
            ORDER BY {query.order} LIMIT ${last + 1} OFFSET ${last + 2}
        ) page ON page.id = s.id
        ORDER BY {query.order}
        """,
        *directory.sql_values, *query.condition.values, query.limit, query.offset,
    )  # fmt: skip
    groups = [_group_record(row) for row in rows]
    return await _with_members(conn, groups) if with_members else groups


async def count_of(conn: Reader, directory: Directory, query: ListQuery) -> int:
    if query.condition == SqlCondition():
        return await totals.read(conn, "scim_groups", directory.counted_as)
    count: int = await conn.fetch_value(
        f"SELECT count(*) FROM scim_groups s WHERE {IN_DIRECTORY} AND {query.condition.sql}",
        *directory.sql_values, *query.condition.values,
    )  # fmt: skip
    return count


async def list_names_by_user(conn: Reader, scim_user_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of the groups that each of these users is in."""
    rows = await conn.fetch_all(
        """
        SELECT m.scim_user_id, g.display_name FROM scim_members m
        JOIN scim_groups g ON g.id = m.group_id
        WHERE m.scim_user_id IN each($1) ORDER BY g.id
        """,
        json.dumps(list(scim_user_ids)),
    )
    names: dict[str, list[str]] = {}
    for row in rows:
        names.setdefault(row["scim_user_id"], []).append(row["display_name"])
    return names


async def _with_members(conn: Reader, groups: Sequence[ProvisionedGroup]) -> list[ProvisionedGroup]:
    rows = await conn.fetch_all(
        """
        SELECT m.group_id, u.id, u.user_name FROM scim_members m
        JOIN scim_users u ON u.id = m.scim_user_id
        WHERE m.group_id IN each($1) ORDER BY m.group_id, u.id
        """,
        json.dumps([group.id for group in groups]),
    )
    members: dict[str, list[ProvisionedMember]] = {}
    for row in rows:
        member = ProvisionedMember(id=row["id"], user_name=row["user_name"])
        members.setdefault(row["group_id"], []).append(member)
    return [replace(group, members=tuple(members.get(group.id, ()))) for group in groups]


def _group_record(row: Row) -> ProvisionedGroup:
    return ProvisionedGroup(
        id=row["id"],
        display_name=row["display_name"],
        external_id=row["external_id"],
        stamp=Stamp(
            created_at=row["created_at"], updated_at=row["updated_at"], version=row["version"]
        ),
    )
