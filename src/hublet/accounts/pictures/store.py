"""SQL of uploaded pictures."""

from hublet.accounts.pictures.records import Picture, Portrayed
from hublet.core.clock import micros
from hublet.core.database import Connection, Reader


async def find(conn: Reader, account_id: str) -> Portrayed | None:
    """Return whose picture it is; the upload of a disabled user is not shown."""
    row = await conn.fetch_one(
        """
        SELECT n.key, u.disabled_at, a.media_type, a.content FROM names n
        LEFT JOIN users u ON u.id = n.account_id
        LEFT JOIN avatars a ON a.account_id = n.account_id
        WHERE n.account_id = $1
        """,
        account_id,
    )
    if row is None:
        return None
    shown = row["content"] is not None and row["disabled_at"] is None
    upload = Picture(media_type=row["media_type"], content=row["content"]) if shown else None
    return Portrayed(name=row["key"], upload=upload)


async def put(conn: Connection, account_id: str, picture: Picture) -> None:
    await conn.execute(
        """
        INSERT INTO avatars (account_id, media_type, content, updated_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (account_id) DO UPDATE SET media_type = excluded.media_type,
            content = excluded.content, updated_at = excluded.updated_at
        """,
        account_id, picture.media_type, picture.content, micros(),
    )  # fmt: skip


async def remove(conn: Connection, account_id: str) -> bool:
    """Remove the upload; False when there is none."""
    count = await conn.execute("DELETE FROM avatars WHERE account_id = $1", account_id)
    return count == 1
