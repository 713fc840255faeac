"""SQL of logos."""

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.oauth.apps.logos.records import Logo


async def find(conn: Reader, app_id: str) -> Logo | None:
    row = await conn.fetch_one(
        "SELECT media_type, content FROM oauth_logos WHERE app_id = $1", app_id
    )
    return Logo(media_type=row["media_type"], content=row["content"]) if row else None


async def put(conn: Connection, app_id: str, logo: Logo) -> None:
    await conn.execute(
        """
        INSERT INTO oauth_logos (app_id, media_type, content, updated_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (app_id) DO UPDATE SET media_type = excluded.media_type,
            content = excluded.content, updated_at = excluded.updated_at
        """,
        app_id, logo.media_type, logo.content, micros(),
    )  # fmt: skip


async def remove(conn: Connection, app_id: str) -> bool:
    """Remove the logo; False when there is none."""
    return await conn.execute("DELETE FROM oauth_logos WHERE app_id = $1", app_id) == 1
