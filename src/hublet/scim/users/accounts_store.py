"""SQL of the accounts behind provisioned users."""

import json
from collections.abc import Sequence

from hublet.accounts.names import email_key, name_key
from hublet.core.database import Connection, Reader


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


async def add_managed(conn: Connection, *, user_id: str, organization_id: str) -> None:
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


async def find_abandoned(conn: Reader, name: str, *, organization_id: str) -> str | None:
    """Return the managed account of this name that belongs to no provisioned user now."""
    user_id: str | None = await conn.fetch_value(
        """
        SELECT a.user_id FROM names n JOIN scim_accounts a ON a.user_id = n.account_id
        WHERE n.key = $1 AND a.organization_id = $2
            AND NOT EXISTS (SELECT 1 FROM scim_users s WHERE s.user_id = a.user_id)
        """,
        name_key(name), organization_id,
    )  # fmt: skip
    return user_id
