"""SQL of invited users without an account."""

import json
from collections.abc import Iterable

from hublet.core.database import Reader
from hublet.scim.records import Directory


async def is_waited_for(
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


async def list_for(conn: Reader, user_id: str) -> list[tuple[str, str]]:
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
