"""SQL of provisioned users, and of those invited who have no account yet."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hublet.accounts.records import Role
from hublet.core.database import Connection, Reader, Row
from hublet.scim.records import (
    Directory,
    KeptRoles,
    ListQuery,
    ProvisionedAddress,
    ProvisionedUser,
    Stamp,
    comparison_key,
)

_USER_COLUMNS = (
    "s.id, s.user_id, s.user_name, s.external_id, s.given_name, s.family_name, s.active, s.kept, "
    "s.created_at, s.updated_at, s.version"
)
_IN_DIRECTORY = "s.organization_id = $1 AND s.managed = $2"


def _directory_values(directory: Directory) -> tuple[str, bool]:
    return directory.organization.id, directory.managed


async def add(conn: Connection, directory: Directory, user: ProvisionedUser) -> None:
    await conn.execute(
        """
        INSERT INTO scim_users
            (organization_id, managed, id, user_id, user_name, user_name_key, external_id,
             given_name, given_name_key, family_name, family_name_key, active, kept,
             created_at, updated_at, version)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
        """,
        *_directory_values(directory), user.id, *_values(user), user.stamp.created_at,
        user.stamp.updated_at, user.stamp.version,
    )  # fmt: skip
    await _set_emails(conn, user)


async def update(conn: Connection, user: ProvisionedUser, *, version: int) -> bool:
    """Write a user that was read in this version; False when it is another one by now."""
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
        user.active, _encode_kept(user.kept),
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
    """Note that somebody left the organization, or came back, in another way than through SCIM.

    What they were before is not kept. Return whether that is somebody whose account is managed.
    """
    rows = await conn.fetch_all(
        """
        UPDATE scim_users SET active = $3, updated_at = $4, version = version + 1, kept = $5
        WHERE organization_id = $1 AND user_id = $2 AND active <> $3 RETURNING managed
        """,
        organization_id, user_id, active, at, _encode_kept(KeptRoles()),
    )  # fmt: skip
    return any(row["managed"] for row in rows)


async def leave_groups(conn: Connection, scim_user_id: str, *, at: int) -> None:
    """Take a user out of the groups, which are others then."""
    await conn.execute(
        """
        UPDATE scim_groups SET updated_at = $2, version = version + 1
        WHERE id IN (SELECT group_id FROM scim_members WHERE scim_user_id = $1)
        """,
        scim_user_id, at,
    )  # fmt: skip
    await conn.execute("DELETE FROM scim_members WHERE scim_user_id = $1", scim_user_id)


async def remove(conn: Connection, scim_user_id: str, *, version: int) -> bool:
    """Remove a user that was read in this version; False when it is another one by now."""
    return await conn.execute(
        "DELETE FROM scim_users WHERE id = $1 AND version = $2", scim_user_id, version
    ) == 1  # fmt: skip


async def find(conn: Reader, directory: Directory, scim_user_id: str) -> ProvisionedUser | None:
    return await _find(conn, directory, "s.id = $3", scim_user_id)


async def find_by_user_name(
    conn: Reader, directory: Directory, name: str
) -> ProvisionedUser | None:
    return await _find(conn, directory, "s.user_name_key = $3", comparison_key(name))


async def find_by_external_id(
    conn: Reader, directory: Directory, value: str
) -> ProvisionedUser | None:
    return await _find(conn, directory, "s.external_id = $3", value)


async def find_by_account(
    conn: Reader, directory: Directory, user_id: str
) -> ProvisionedUser | None:
    return await _find(conn, directory, "s.user_id = $3", user_id)


async def _find(
    conn: Reader, directory: Directory, condition: str, value: str
) -> ProvisionedUser | None:
    row = await conn.fetch_one(
        f"SELECT {_USER_COLUMNS} FROM scim_users s WHERE {_IN_DIRECTORY} AND {condition}",
        *_directory_values(directory), value,
    )  # fmt: skip
    return (await _with_emails(conn, [row]))[0] if row else None


async def list_of(conn: Reader, directory: Directory, asked: ListQuery) -> list[ProvisionedUser]:
    """Return one page: its ids are read from an index, and only its own rows besides."""
    last = len(asked.condition.values) + 2
    rows = await conn.fetch_all(
        f"""
        SELECT {_USER_COLUMNS} FROM scim_users s
        JOIN (
            SELECT s.id FROM scim_users s WHERE {_IN_DIRECTORY} AND {asked.condition.sql}
            ORDER BY {asked.order} LIMIT ${last + 1} OFFSET ${last + 2}
        ) page ON page.id = s.id
        ORDER BY {asked.order}
        """,
        *_directory_values(directory), *asked.condition.values, asked.limit, asked.offset,
    )  # fmt: skip
    return await _with_emails(conn, rows)


async def count_of(conn: Reader, directory: Directory, asked: ListQuery) -> int:
    count: int = await conn.fetch_value(
        f"SELECT count(*) FROM scim_users s WHERE {_IN_DIRECTORY} AND {asked.condition.sql}",
        *_directory_values(directory), *asked.condition.values,
    )  # fmt: skip
    return count


async def list_by_ids(
    conn: Reader, directory: Directory, ids: Iterable[str]
) -> list[ProvisionedUser]:
    """Return those of these users that are in the directory, without their addresses."""
    rows = await conn.fetch_all(
        f"SELECT {_USER_COLUMNS} FROM scim_users s WHERE {_IN_DIRECTORY} AND s.id IN each($3) ORDER BY s.id",
        *_directory_values(directory), json.dumps(list(ids)),
    )  # fmt: skip
    return [_user_record(row) for row in rows]


async def _with_emails(conn: Reader, rows: Sequence[Row]) -> list[ProvisionedUser]:
    users = [_user_record(row) for row in rows]
    found = await conn.fetch_all(
        """
        SELECT scim_user_id, address, is_primary, type FROM scim_emails
        WHERE scim_user_id IN each($1) ORDER BY scim_user_id, position
        """,
        json.dumps([user.id for user in users]),
    )
    emails: dict[str, list[ProvisionedAddress]] = {}
    for row in found:
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
        kept=_decode_kept(row["kept"]),
        stamp=Stamp(
            created_at=row["created_at"], updated_at=row["updated_at"], version=row["version"]
        ),
    )


def _optional_bool(value: bool | int | None) -> bool | None:  # noqa: FBT001 - SQLite has numbers for both
    return None if value is None else bool(value)


def _encode_kept(kept: KeptRoles) -> str:
    return json.dumps({"role": kept.role, "resource_groups": kept.resource_groups})


def _decode_kept(text: str) -> KeptRoles:
    stored = json.loads(text)
    return KeptRoles(
        role=Role(stored["role"]) if stored["role"] else None,
        resource_groups={
            group_id: Role(role) for group_id, role in stored["resource_groups"].items()
        },
    )


async def is_invited(
    conn: Reader, directory: Directory, address_keys: Iterable[str], *, besides: str
) -> bool:
    """Tell whether an active user, but for this one, waits for an account with such an address."""
    found = await conn.fetch_one(
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
        directory.organization.id, directory.managed, json.dumps(sorted(address_keys)), besides,
    )  # fmt: skip
    return found is not None


async def list_invitations(conn: Reader, user_id: str) -> list[tuple[str, str]]:
    """Return invited users with an address of this person, as names of organizations and ids.

    Nobody waits for a managed account: only its organization speaks for the addresses.
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
