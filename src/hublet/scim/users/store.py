"""SQL of provisioned users, of the accounts behind them, and of invitations."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hublet.accounts.names import email_key, name_key
from hublet.accounts.records import Role
from hublet.core import totals
from hublet.core.database import Connection, Reader, Row
from hublet.scim.records import (
    IN_DIRECTORY,
    Directory,
    FormerRoles,
    IdentifierHolders,
    ListQuery,
    ProvisionedAddress,
    ProvisionedUser,
    SqlCondition,
    Stamp,
    comparison_key,
)

_USER_COLUMNS = (
    "s.id, s.user_id, s.user_name, s.external_id, s.given_name, s.family_name, s.active, s.kept, "
    "s.created_at, s.updated_at, s.version"
)


async def add(conn: Connection, directory: Directory, user: ProvisionedUser) -> None:
    await conn.execute(
        """
        INSERT INTO scim_users
            (organization_id, managed, id, user_id, user_name, user_name_key, external_id,
             given_name, given_name_key, family_name, family_name_key, active, kept,
             created_at, updated_at, version)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
        """,
        *directory.sql_values, user.id, *_values(user), user.stamp.created_at,
        user.stamp.updated_at, user.stamp.version,
    )  # fmt: skip
    await _set_emails(conn, user)


async def update(conn: Connection, user: ProvisionedUser, *, version: int) -> bool:
    """Write a user that was read in this version; False when it was changed meanwhile."""
    written = await conn.execute(
        """
        UPDATE scim_users SET
            user_id = $2, user_name = $3, user_name_key = $4, external_id = $5, given_name = $6,
            given_name_key = $7, family_name = $8, family_name_key = $9, active = $10, kept = $11,
            updated_at = $12, version = $13
        WHERE id = $1 AND version = $14
        """,
        user.id, *_values(user), user.stamp.updated_at, user.stamp.version, version,
    )  # fmt: skip
    if not written:
        return False
    await conn.execute("DELETE FROM scim_emails WHERE scim_user_id = $1", user.id)
    await _set_emails(conn, user)
    return True


def _values(user: ProvisionedUser) -> tuple[object, ...]:
    return (
        user.user_id, user.user_name, comparison_key(user.user_name), user.external_id,
        user.given_name, _key(user.given_name), user.family_name, _key(user.family_name),
        user.active, _encode_roles(user.former_roles),
    )  # fmt: skip


def _key(text: str | None) -> str | None:
    return None if text is None else comparison_key(text)


async def _set_emails(conn: Connection, user: ProvisionedUser) -> None:
    await conn.execute_many(
        """
        INSERT INTO scim_emails (scim_user_id, position, address, address_key, is_primary, type)
        VALUES ($1, $2, $3, $4, $5, $6)
        """,
        [
            (user.id, position, each.value, comparison_key(each.value), each.primary, each.type)
            for position, each in enumerate(user.emails)
        ],
    )


async def set_active(
    conn: Connection, organization_id: str, *, user_id: str, active: bool, at: int
) -> bool:
    """Write that a user left or rejoined the organization in another way than through SCIM.

    The stored former roles are dropped. Return whether the account of the user is managed.
    """
    rows = await conn.fetch_all(
        """
        UPDATE scim_users SET active = $3, updated_at = $4, version = version + 1, kept = $5
        WHERE organization_id = $1 AND user_id = $2 AND active <> $3 RETURNING managed
        """,
        organization_id, user_id, active, at, _encode_roles(FormerRoles()),
    )  # fmt: skip
    return any(row["managed"] for row in rows)


async def leave_groups(conn: Connection, scim_user_id: str, *, at: int) -> None:
    """Remove a user from all groups, and count up the versions of these groups."""
    await conn.execute(
        """
        UPDATE scim_groups SET updated_at = $2, version = version + 1
        WHERE id IN (SELECT group_id FROM scim_members WHERE scim_user_id = $1)
        """,
        scim_user_id, at,
    )  # fmt: skip
    await conn.execute("DELETE FROM scim_members WHERE scim_user_id = $1", scim_user_id)


async def remove(conn: Connection, scim_user_id: str, *, version: int) -> bool:
    """Remove a user that was read in this version; False when it was changed meanwhile."""
    return await conn.execute(
        "DELETE FROM scim_users WHERE id = $1 AND version = $2", scim_user_id, version
    ) == 1  # fmt: skip


async def find(conn: Reader, directory: Directory, scim_user_id: str) -> ProvisionedUser | None:
    return await _find(conn, directory, "s.id = $3", scim_user_id)


async def find_holders(
    conn: Reader, directory: Directory, user: ProvisionedUser
) -> IdentifierHolders:
    """Return who has the name and the external id of a user, and whose account has the name."""
    row = await conn.fetch_one(
        f"""
        SELECT
            (SELECT s.id FROM scim_users s WHERE {IN_DIRECTORY} AND s.user_name_key = $3)
                AS user_name,
            (SELECT s.id FROM scim_users s WHERE {IN_DIRECTORY} AND s.external_id = $4)
                AS external_id,
            (SELECT a.user_id FROM names n JOIN scim_accounts a ON a.user_id = n.account_id
             WHERE n.key = $5 AND a.organization_id = $1
                 AND NOT EXISTS (SELECT 1 FROM scim_users s WHERE s.user_id = a.user_id))
                AS abandoned_account
        """,
        *directory.sql_values, comparison_key(user.user_name), user.external_id,
        name_key(user.user_name),
    )  # fmt: skip
    assert row is not None  # noqa: S101 - it reads no table
    return IdentifierHolders(**dict(row))


async def find_by_account(
    conn: Reader, directory: Directory, user_id: str
) -> ProvisionedUser | None:
    return await _find(conn, directory, "s.user_id = $3", user_id)


async def _find(
    conn: Reader, directory: Directory, condition: str, value: str
) -> ProvisionedUser | None:
    row = await conn.fetch_one(
        f"SELECT {_USER_COLUMNS} FROM scim_users s WHERE {IN_DIRECTORY} AND {condition}",
        *directory.sql_values, value,
    )  # fmt: skip
    return (await _with_emails(conn, [row]))[0] if row else None


async def list_of(conn: Reader, directory: Directory, query: ListQuery) -> list[ProvisionedUser]:
    """Return one page; a subquery reads its ids from an index, so that no other rows are read."""
    last = len(query.condition.values) + 2
    rows = await conn.fetch_all(
        f"""
        SELECT {_USER_COLUMNS} FROM scim_users s
        JOIN (
            SELECT s.id FROM scim_users s WHERE {IN_DIRECTORY} AND {query.condition.sql}
            ORDER BY {query.order} LIMIT ${last + 1} OFFSET ${last + 2}
        ) page ON page.id = s.id
        ORDER BY {query.order}
        """,
        *directory.sql_values, *query.condition.values, query.limit, query.offset,
    )  # fmt: skip
    return await _with_emails(conn, rows)


async def count_of(conn: Reader, directory: Directory, query: ListQuery) -> int:
    if query.condition == SqlCondition():
        return await totals.read(conn, "scim_users", directory.counted_as)
    count: int = await conn.fetch_value(
        f"SELECT count(*) FROM scim_users s WHERE {IN_DIRECTORY} AND {query.condition.sql}",
        *directory.sql_values, *query.condition.values,
    )  # fmt: skip
    return count


async def list_provisioned(
    conn: Reader, organization_id: str, account_ids: Iterable[str]
) -> dict[str, bool]:
    """Return the accounts among these that a provider keeps, and whether each is managed."""
    rows = await conn.fetch_all(
        """
        SELECT s.user_id, s.managed FROM scim_users s
        WHERE s.organization_id = $1 AND s.active AND s.user_id IN each($2)
        """,
        organization_id, json.dumps(list(account_ids)),
    )  # fmt: skip
    return {row["user_id"]: bool(row["managed"]) for row in rows}


async def list_by_ids(
    conn: Reader, directory: Directory, ids: Iterable[str]
) -> list[ProvisionedUser]:
    """Return the users of the directory with these ids, without their addresses."""
    rows = await conn.fetch_all(
        f"SELECT {_USER_COLUMNS} FROM scim_users s WHERE {IN_DIRECTORY} AND s.id IN each($3) ORDER BY s.id",
        *directory.sql_values, json.dumps(list(ids)),
    )  # fmt: skip
    return [_user_record(row) for row in rows]


async def _with_emails(conn: Reader, rows: Sequence[Row]) -> list[ProvisionedUser]:
    users = [_user_record(row) for row in rows]
    email_rows = await conn.fetch_all(
        """
        SELECT scim_user_id, address, is_primary, type FROM scim_emails
        WHERE scim_user_id IN each($1) ORDER BY scim_user_id, position
        """,
        json.dumps([user.id for user in users]),
    )
    emails: dict[str, list[ProvisionedAddress]] = {}
    for row in email_rows:
        address = ProvisionedAddress(
            value=row["address"], primary=_optional_bool(row["is_primary"]), type=row["type"]
        )
        emails.setdefault(row["scim_user_id"], []).append(address)
    return [replace(user, emails=tuple(emails.get(user.id, ()))) for user in users]


def _user_record(row: Row) -> ProvisionedUser:
    return ProvisionedUser(
        id=row["id"],
        user_id=row["user_id"],
        user_name=row["user_name"],
        external_id=row["external_id"],
        given_name=row["given_name"],
        family_name=row["family_name"],
        active=bool(row["active"]),
        former_roles=_decode_roles(row["kept"]),
        stamp=Stamp(
            created_at=row["created_at"], updated_at=row["updated_at"], version=row["version"]
        ),
    )


def _optional_bool(value: bool | int | None) -> bool | None:  # noqa: FBT001 - SQLite has numbers for both
    return None if value is None else bool(value)


def _encode_roles(former: FormerRoles) -> str:
    return json.dumps({"role": former.role, "resource_groups": former.resource_groups})


def _decode_roles(text: str) -> FormerRoles:
    stored = json.loads(text)
    return FormerRoles(
        role=Role(stored["role"]) if stored["role"] else None,
        resource_groups={
            group_id: Role(role) for group_id, role in stored["resource_groups"].items()
        },
    )


async def is_invited(
    conn: Reader, directory: Directory, address_keys: Iterable[str], *, except_for: str
) -> bool:
    """Tell whether another active user waits for an account with one of these addresses."""
    row = await conn.fetch_one(
        """
        SELECT 1 FROM scim_users s
        WHERE s.organization_id = $1 AND s.managed = $2 AND s.id <> $4
            AND s.user_id IS NULL AND s.active AND s.id IN (
                SELECT m.scim_user_id FROM scim_emails m WHERE m.address_key IN each($3)
                UNION
                SELECT n.id FROM scim_users n
                WHERE n.user_name_key IN each($3) AND n.user_id IS NULL
            )
        """,
        *directory.sql_values, json.dumps(sorted(address_keys)), except_for,
    )  # fmt: skip
    return row is not None


async def list_invitations(conn: Reader, user_id: str) -> list[tuple[str, str]]:
    """Return the invitations for a verified address of this user: organization name and id.

    There are none for a managed account: only its organization has verified its addresses.
    """
    rows = await conn.fetch_all(
        """
        SELECT o.name, s.id FROM scim_users s
        JOIN organizations o ON o.id = s.organization_id
        WHERE s.user_id IS NULL AND s.active AND NOT s.managed AND s.id IN (
            SELECT m.scim_user_id FROM emails e JOIN scim_emails m ON m.address_key = e.address_key
            WHERE e.user_id = $1 AND e.verified_at IS NOT NULL
            UNION
            SELECT n.id FROM emails e JOIN scim_users n ON n.user_name_key = e.address_key
            WHERE e.user_id = $1 AND e.verified_at IS NOT NULL AND n.user_id IS NULL
        )
        AND NOT EXISTS (SELECT 1 FROM scim_accounts a WHERE a.user_id = $1)
        ORDER BY s.id
        """,
        user_id,
    )
    return [(row["name"], row["id"]) for row in rows]


async def find_account_id(conn: Reader, addresses: Sequence[str]) -> str | None:
    """Return the account with one of these addresses, verified; the first address counts most.

    Managed accounts are left out: only their own organization vouches for their addresses, and
    others must not be able to invite by them.
    """
    keys = [email_key(address) for address in addresses]
    rows = await conn.fetch_all(
        """
        SELECT e.address_key, u.id FROM emails e JOIN users u ON u.id = e.user_id
        WHERE e.address_key IN each($1) AND e.verified_at IS NOT NULL
            AND u.disabled_at IS NULL AND u.type = 'user'
            AND NOT EXISTS (SELECT 1 FROM scim_accounts a WHERE a.user_id = u.id)
        """,
        json.dumps(keys),
    )
    owners: dict[str, str] = {row["address_key"]: row["id"] for row in rows}
    return next((owners[key] for key in keys if key in owners), None)


async def add_managed_account(conn: Connection, *, user_id: str, organization_id: str) -> None:
    """Mark an account as one that an organization manages."""
    await conn.execute(
        "INSERT INTO scim_accounts (user_id, organization_id) VALUES ($1, $2)",
        user_id, organization_id,
    )  # fmt: skip


async def set_disabled_by_provider(conn: Connection, user_id: str) -> None:
    """Record that the identity provider disabled an account, just now."""
    await conn.execute(
        """
        UPDATE scim_accounts SET switched_off_at = (SELECT disabled_at FROM users WHERE id = $1)
        WHERE user_id = $1
        """,
        user_id,
    )


async def is_disabled_by_provider(conn: Reader, user_id: str) -> bool:
    """Tell whether an account is disabled, last by the identity provider."""
    row = await conn.fetch_one(
        """
        SELECT 1 FROM scim_accounts a JOIN users u ON u.id = a.user_id
        WHERE a.user_id = $1 AND u.disabled_at = a.switched_off_at
        """,
        user_id,
    )
    return row is not None
