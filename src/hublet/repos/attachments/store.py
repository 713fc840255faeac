"""SQL of attachments."""

from hublet.core.clock import from_micros, to_micros
from hublet.core.database import Connection, Reader
from hublet.repos.attachments.records import Attachment


async def add(conn: Connection, attachment: Attachment) -> None:
    await conn.execute(
        """
        INSERT INTO attachments (name, user_id, sha256, size, media_type, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        """,
        attachment.name, attachment.user_id, attachment.sha256, attachment.size,
        attachment.media_type, to_micros(attachment.created_at),
    )  # fmt: skip


async def find(conn: Reader, name: str) -> Attachment | None:
    row = await conn.fetch_one(
        "SELECT name, user_id, sha256, size, media_type, created_at FROM attachments WHERE name = $1",
        name,
    )
    if row is None:
        return None
    return Attachment(
        name=row["name"],
        user_id=row["user_id"],
        sha256=row["sha256"],
        size=row["size"],
        media_type=row["media_type"],
        created_at=from_micros(row["created_at"]),
    )
