"""SQL of organizations, the members of them and of their resource groups, and all accounts."""

import json
from collections.abc import Iterable

import msgspec

from hublet.accounts import name_parts_store
from hublet.accounts.names import name_key
from hublet.accounts.records import (
    Account,
    DefaultVisibility,
    GroupMembership,
    Member,
    Organization,
    OrganizationPlan,
    OwnerType,
    Role,
    UserType,
)
from hublet.accounts.users.store import (
    ORGANIZATION_COLUMNS,
    USER_COLUMNS,
    organization_record,
    user_record,
)
from hublet.core import totals
from hublet.core.clock import micros, to_micros
from hublet.core.database import Connection, Reader, Row, like_pattern


async def add(conn: Connection, organization: Organization) -> None:
    await conn.execute(
        "INSERT INTO organizations (id, name, fullname, plan, created_at) VALUES ($1, $2, $3, $4, $5)",
        organization.id, organization.name, organization.fullname, organization.plan,
        to_micros(organization.created_at),
    )  # fmt: skip


async def find_by_name(conn: Reader, name: str) -> Organization | None:
    row = await conn.fetch_one(
        f"""
        SELECT {ORGANIZATION_COLUMNS} FROM names n JOIN organizations o ON o.id = n.account_id
        WHERE n.key = $1
        """,
        name_key(name),
    )
    return organization_record(row) if row else None


async def list_by_ids(conn: Reader, organization_ids: Iterable[str]) -> list[Organization]:
    rows = await conn.fetch_all(
        f"SELECT {ORGANIZATION_COLUMNS} FROM organizations o WHERE o.id IN each($1)",
        msgspec.json.encode(list(organization_ids)).decode(),
    )
    return [organization_record(row) for row in rows]


async def list_all(conn: Reader, *, after: str = "", limit: int = 100) -> list[Organization]:
    rows = await conn.fetch_all(
        f"SELECT {ORGANIZATION_COLUMNS} FROM organizations o WHERE o.id > $1 ORDER BY o.id LIMIT $2",
        after, limit,
    )  # fmt: skip
    return [organization_record(row) for row in rows]


async def list_followed(
    conn: Reader, *, follower_id: str, after: str = "", limit: int = 100
) -> list[Organization]:
    """Return the organizations that a user follows, in the order of their ids."""
    rows = await conn.fetch_all(
        f"""
        SELECT {ORGANIZATION_COLUMNS} FROM follows f JOIN organizations o ON o.id = f.account_id
        WHERE f.follower_id = $1 AND f.account_id > $2 ORDER BY f.account_id LIMIT $3
        """,
        follower_id, after, limit,
    )  # fmt: skip
    return [organization_record(row) for row in rows]


async def set_fullname(conn: Connection, organization_id: str, fullname: str) -> None:
    await conn.execute(
        "UPDATE organizations SET fullname = $1 WHERE id = $2", fullname, organization_id
    )


async def set_plan(conn: Connection, organization_id: str, plan: OrganizationPlan) -> None:
    await conn.execute("UPDATE organizations SET plan = $1 WHERE id = $2", plan, organization_id)


async def set_default_visibility(
    conn: Connection, organization_id: str, visibility: DefaultVisibility
) -> None:
    await conn.execute(
        "UPDATE organizations SET default_visibility = $1 WHERE id = $2",
        visibility, organization_id,
    )  # fmt: skip


async def default_visibility_of(conn: Reader, organization_id: str) -> DefaultVisibility:
    return DefaultVisibility(
        await conn.fetch_value(
            "SELECT default_visibility FROM organizations WHERE id = $1", organization_id
        )
    )


async def role_of(conn: Reader, organization_id: str, *, user_id: str) -> Role | None:
    role = await conn.fetch_value(
        "SELECT role FROM memberships WHERE organization_id = $1 AND user_id = $2",
        organization_id, user_id,
    )  # fmt: skip
    return Role(role) if role else None


async def set_member(conn: Connection, organization_id: str, *, user_id: str, role: Role) -> None:
    await conn.execute(
        """
        INSERT INTO memberships (organization_id, user_id, role, created_at)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (organization_id, user_id) DO UPDATE SET role = excluded.role
        """,
        organization_id, user_id, role, micros(),
    )  # fmt: skip


async def remove_member(conn: Connection, organization_id: str, *, user_id: str) -> None:
    await conn.execute(
        "DELETE FROM memberships WHERE organization_id = $1 AND user_id = $2",
        organization_id, user_id,
    )  # fmt: skip


async def count_other_admins(conn: Reader, organization_id: str, *, user_id: str) -> int:
    """Count the administrators, but for this user, who are people and can still log in."""
    count: int = await conn.fetch_value(
        """
        SELECT count(*) FROM memberships m JOIN users u ON u.id = m.user_id
        WHERE m.organization_id = $1 AND m.role = $2 AND m.user_id <> $3
          AND u.type = $4 AND u.disabled_at IS NULL
        """,
        organization_id, Role.admin, user_id, UserType.person,
    )  # fmt: skip
    return count


async def count_members(conn: Reader, organization_id: str) -> int:
    """Count the members who are not disabled."""
    return await totals.read_difference(conn, "members", "disabled_members", organization_id)


async def list_members(
    conn: Reader,
    organization_id: str,
    *,
    after: str = "",
    limit: int = 100,
    search: str = "",
    email: str = "",
) -> list[Member]:
    """Return the members in the order of their ids, without disabled users.

    With `search` only those whose name or full name contains it, in any case; with `email` the one
    who verified this address. The position is said of both tables: PostgreSQL may merge them, and
    would read one of them from its beginning.
    """
    position, among = "m.user_id > $2 AND u.id > $2", after
    if search and await name_parts_store.is_filled(conn):
        ids = await name_parts_store.find_ids(conn, [name_parts_store.USERS], [search.lower()])
        if ids is not None:
            # Where more have it, a page is soon full.
            position = "m.user_id IN each($2)"
            among = json.dumps([each for each in ids if each > after])
    rows = await conn.fetch_all(
        f"""
        SELECT {USER_COLUMNS}, m.role FROM memberships m JOIN users u ON u.id = m.user_id
        WHERE m.organization_id = $1 AND {position} AND u.disabled_at IS NULL
          AND ($4 = '' OR lower(u.name) LIKE $4 ESCAPE '~' OR lower(u.fullname) LIKE $4 ESCAPE '~')
          AND ($5 = '' OR EXISTS (
              SELECT 1 FROM emails e
              WHERE e.user_id = u.id AND lower(e.address) = $5 AND e.verified_at IS NOT NULL
          ))
        ORDER BY m.user_id LIMIT $3
        """,
        organization_id, among, limit, like_pattern(search.lower()) if search else "", email.lower(),
    )  # fmt: skip
    return [Member(user=user_record(row), role=Role(row["role"])) for row in rows]


async def group_role_of(conn: Reader, group_id: str, *, user_id: str) -> Role | None:
    role = await conn.fetch_value(
        "SELECT role FROM resource_group_members WHERE resource_group_id = $1 AND user_id = $2",
        group_id, user_id,
    )  # fmt: skip
    return Role(role) if role else None


async def set_group_member(conn: Connection, group_id: str, *, user_id: str, role: Role) -> None:
    await conn.execute(
        """
        INSERT INTO resource_group_members (resource_group_id, user_id, role) VALUES ($1, $2, $3)
        ON CONFLICT (resource_group_id, user_id) DO UPDATE SET role = excluded.role
        """,
        group_id, user_id, role,
    )  # fmt: skip


async def remove_group_member(conn: Connection, group_id: str, *, user_id: str) -> None:
    await conn.execute(
        "DELETE FROM resource_group_members WHERE resource_group_id = $1 AND user_id = $2",
        group_id, user_id,
    )  # fmt: skip


async def list_groups_of_member(
    conn: Reader, organization_id: str, *, user_id: str
) -> list[GroupMembership]:
    rows = await conn.fetch_all(
        """
        SELECT g.id, g.name, m.role FROM resource_group_members m
        JOIN resource_groups g ON g.id = m.resource_group_id
        WHERE g.organization_id = $1 AND m.user_id = $2 ORDER BY g.id
        """,
        organization_id, user_id,
    )  # fmt: skip
    return [
        GroupMembership(group_id=row["id"], group_name=row["name"], role=Role(row["role"]))
        for row in rows
    ]


async def list_groups_to_join(conn: Reader, organization_id: str) -> list[GroupMembership]:
    """Return the groups that new members of an organization join by themselves, with the role."""
    rows = await conn.fetch_all(
        """
        SELECT id, name, auto_join_role FROM resource_groups
        WHERE organization_id = $1 AND auto_join_role IS NOT NULL ORDER BY id
        """,
        organization_id,
    )
    return [
        GroupMembership(
            group_id=row["id"], group_name=row["name"], role=Role(row["auto_join_role"])
        )
        for row in rows
    ]


async def list_group_members(conn: Reader, group_id: str) -> list[Member]:
    """Return the members in the order of their ids, without disabled users."""
    rows = await conn.fetch_all(
        f"""
        SELECT {USER_COLUMNS}, m.role FROM resource_group_members m JOIN users u ON u.id = m.user_id
        WHERE m.resource_group_id = $1 AND u.disabled_at IS NULL ORDER BY m.user_id
        """,
        group_id,
    )
    return [Member(user=user_record(row), role=Role(row["role"])) for row in rows]


async def list_groups_of_members(
    conn: Reader, organization_id: str, user_ids: Iterable[str]
) -> dict[str, list[tuple[GroupMembership, int]]]:
    """Return the groups of members by user id, each with how many members it has."""
    rows = await conn.fetch_all(
        """
        SELECT m.user_id, g.id, g.name, m.role, (
            SELECT count(*) FROM resource_group_members c WHERE c.resource_group_id = g.id
        ) AS members
        FROM resource_group_members m JOIN resource_groups g ON g.id = m.resource_group_id
        WHERE g.organization_id = $1 AND m.user_id IN each($2) ORDER BY g.id
        """,
        organization_id, msgspec.json.encode(list(user_ids)).decode(),
    )  # fmt: skip
    groups: dict[str, list[tuple[GroupMembership, int]]] = {}
    for row in rows:
        group = GroupMembership(group_id=row["id"], group_name=row["name"], role=Role(row["role"]))
        groups.setdefault(row["user_id"], []).append((group, row["members"]))
    return groups


async def list_primary_addresses(conn: Reader, user_ids: Iterable[str]) -> dict[str, str]:
    """Return the verified primary address of users by id."""
    rows = await conn.fetch_all(
        """
        SELECT user_id, address FROM emails
        WHERE user_id IN each($1) AND is_primary AND verified_at IS NOT NULL
        """,
        msgspec.json.encode(list(user_ids)).decode(),
    )
    return {row["user_id"]: row["address"] for row in rows}


_FROM_SERVICE_ACCOUNTS = """
    FROM users u JOIN memberships m ON m.user_id = u.id AND m.organization_id = u.organization_id
    WHERE u.organization_id = $1 AND u.disabled_at IS NULL
"""


async def list_service_accounts(
    conn: Reader, *, organization_id: str, after: str = "", limit: int = 100
) -> list[Member]:
    rows = await conn.fetch_all(
        f"SELECT {USER_COLUMNS}, m.role {_FROM_SERVICE_ACCOUNTS} AND u.id > $2 ORDER BY u.id LIMIT $3",
        organization_id, after, limit,
    )  # fmt: skip
    return [Member(user=user_record(row), role=Role(row["role"])) for row in rows]


async def find_service_account(
    conn: Reader, account_id: str, *, organization_id: str
) -> Member | None:
    row = await conn.fetch_one(
        f"SELECT {USER_COLUMNS}, m.role {_FROM_SERVICE_ACCOUNTS} AND u.id = $2",
        organization_id,
        account_id,
    )
    return Member(user=user_record(row), role=Role(row["role"])) if row else None


async def find_accounts(conn: Reader, ids: Iterable[str | None]) -> dict[str, Account]:
    """Return the users and organizations of these ids, by id; an id may be None or unknown."""
    known = sorted({account_id for account_id in ids if account_id is not None})
    if not known:
        return {}
    rows = await conn.fetch_all(
        """
        SELECT id, name, fullname, type FROM users WHERE id IN each($1)
        UNION ALL
        SELECT id, name, fullname, 'org' AS type FROM organizations WHERE id IN each($1)
        """,
        msgspec.json.encode(known).decode(),
    )
    return {row["id"]: account_record(row) for row in rows}


def account_record(row: Row) -> Account:
    is_organization = row["type"] == OwnerType.organization
    return Account(
        id=row["id"],
        name=row["name"],
        fullname=row["fullname"],
        type=OwnerType.organization if is_organization else OwnerType.user,
        is_service_account=row["type"] == UserType.service,
    )
