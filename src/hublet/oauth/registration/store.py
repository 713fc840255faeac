"""SQL of apps that nobody registered."""

from hublet.core.database import Reader


async def list_unused(conn: Reader, *, before: int, limit: int) -> list[str]:
    """Return apps that came by themselves, and that nobody has used since that time."""
    rows = await conn.fetch_all(
        """
        SELECT a.id FROM oauth_apps a
        WHERE a.kind IN ('dynamic', 'document') AND a.updated_at < $1
            AND NOT EXISTS (
                SELECT 1 FROM oauth_accesses x
                WHERE x.app_id = a.id
                    AND (x.ended_at IS NULL AND x.expires_at >= $1 OR x.last_used_at >= $1)
            )
        ORDER BY a.id LIMIT $2
        """,
        before, limit,
    )  # fmt: skip
    return [row["id"] for row in rows]
