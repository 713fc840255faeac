"""SQL of what organizations decide about apps that are bound to them."""

from hublet.core.database import Connection, Reader


async def find_exchange_seconds(conn: Reader, organization_id: str) -> int | None:
    seconds: int | None = await conn.fetch_value(
        "SELECT exchange_seconds FROM oauth_organizations WHERE organization_id = $1",
        organization_id,
    )
    return seconds


async def set_exchange_seconds(conn: Connection, organization_id: str, seconds: int) -> None:
    await conn.execute(
        """
        INSERT INTO oauth_organizations (organization_id, exchange_seconds) VALUES ($1, $2)
        ON CONFLICT (organization_id) DO UPDATE SET exchange_seconds = excluded.exchange_seconds
        """,
        organization_id, seconds,
    )  # fmt: skip
