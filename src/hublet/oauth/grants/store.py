"""SQL of token exchange: the terms of an organization, and the member with an e-mail address."""

from hublet.accounts.records import OrganizationPlan
from hublet.core.database import Reader
from hublet.oauth.grants.context import ExchangeTerms
from hublet.oauth.records import DEFAULT_EXCHANGE_SECONDS


async def find_terms(conn: Reader, organization_id: str) -> ExchangeTerms | None:
    row = await conn.fetch_one(
        """
        SELECT o.id, o.name, o.plan, s.exchange_seconds FROM organizations o
        LEFT JOIN oauth_organizations s ON s.organization_id = o.id
        WHERE o.id = $1
        """,
        organization_id,
    )
    if row is None:
        return None
    seconds = row["exchange_seconds"]
    return ExchangeTerms(
        organization_id=row["id"],
        organization_name=row["name"],
        plan=OrganizationPlan(row["plan"]),
        seconds=DEFAULT_EXCHANGE_SECONDS if seconds is None else seconds,
    )


async def find_member(conn: Reader, organization_id: str, *, address_key: str) -> str | None:
    """Return the member whose verified address this is, unless the account is disabled."""
    user_id: str | None = await conn.fetch_value(
        """
        SELECT u.id FROM emails e
        JOIN users u ON u.id = e.user_id
        JOIN memberships m ON m.user_id = u.id
        WHERE e.address_key = $1 AND e.verified_at IS NOT NULL AND u.disabled_at IS NULL
            AND m.organization_id = $2
        """,
        address_key, organization_id,
    )  # fmt: skip
    return user_id
