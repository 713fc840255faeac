"""SQL of the accounts behind provisioned users."""

import json
from collections.abc import Sequence

from hublet.accounts.names import email_key, name_key
from hublet.accounts.records import Role
from hublet.core.database import Connection, Reader
from hublet.scim.records import KeptRoles


async def find_account_id(conn: Reader, addresses: Sequence[str]) -> str | None:
    """Return the person to whom one of these addresses belongs for sure; the first ones count most.

    Of a managed account only its organization says so, which must not speak for the addresses
    that another one invites.
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


async def roles_of(conn: Reader, *, organization_id: str, user_id: str) -> KeptRoles:
    """Return what a member is in the organization; nothing for somebody who is none."""
    role = await conn.fetch_value(
        "SELECT role FROM memberships WHERE organization_id = $1 AND user_id = $2",
        organization_id, user_id,
    )  # fmt: skip
    rows = await conn.fetch_all(
        """
        SELECT g.id, m.role FROM resource_group_members m
        JOIN resource_groups g ON g.id = m.resource_group_id
        WHERE g.organization_id = $1 AND m.user_id = $2 ORDER BY g.id
        """,
        organization_id, user_id,
    )  # fmt: skip
    groups = {row["id"]: Role(row["role"]) for row in rows}
    return KeptRoles(role=Role(role) if role else None, resource_groups=groups)


async def list_account_emails(conn: Reader, user_id: str) -> list[tuple[str, str, bool]]:
    """Return id and address of each e-mail address of an account, and whether it is primary."""
    rows = await conn.fetch_all(
        "SELECT id, address, is_primary FROM emails WHERE user_id = $1 ORDER BY id", user_id
    )
    return [(row["id"], row["address"], bool(row["is_primary"])) for row in rows]


async def add_managed(conn: Connection, *, user_id: str, organization_id: str) -> None:
    """Note that an account belongs to an organization."""
    await conn.execute(
        "INSERT INTO scim_accounts (user_id, organization_id) VALUES ($1, $2)",
        user_id, organization_id,
    )  # fmt: skip


async def set_disabled_by_provider(conn: Connection, user_id: str) -> None:
    """Note that it was the provider who switched an account off, just now."""
    await conn.execute(
        """
        UPDATE scim_accounts SET switched_off_at = (SELECT disabled_at FROM users WHERE id = $1)
        WHERE user_id = $1
        """,
        user_id,
    )


async def is_disabled_by_provider(conn: Reader, user_id: str) -> bool:
    """Tell whether an account is off, and nobody but the provider has switched it off since."""
    found = await conn.fetch_value(
        """
        SELECT 1 FROM scim_accounts a JOIN users u ON u.id = a.user_id
        WHERE a.user_id = $1 AND u.disabled_at = a.switched_off_at
        """,
        user_id,
    )
    return found is not None


async def find_abandoned(conn: Reader, name: str, *, organization_id: str) -> str | None:
    """Return the account of this name that an organization owns and gives nobody now."""
    found: str | None = await conn.fetch_value(
        """
        SELECT a.user_id FROM names n JOIN scim_accounts a ON a.user_id = n.account_id
        WHERE n.key = $1 AND a.organization_id = $2
            AND NOT EXISTS (SELECT 1 FROM scim_users s WHERE s.user_id = a.user_id)
        """,
        name_key(name), organization_id,
    )  # fmt: skip
    return found
