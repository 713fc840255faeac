"""SQL of uploads of blobs that are not complete, and of their parts."""

from collections.abc import Sequence

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader, Row
from hublet.registry.records import ImageKey, Upload, UploadPart


async def add(conn: Connection, upload: Upload) -> None:
    await conn.execute(
        """
        INSERT INTO registry_uploads (id, repo_id, image, user_id, size, created_at, changed_at)
        VALUES ($1, $2, $3, $4, 0, $5, $5)
        """,
        upload.id, upload.image.repo_id, upload.image.path, upload.user_id, micros(),
    )  # fmt: skip


async def find(conn: Reader, upload_id: str) -> Upload | None:
    row = await conn.fetch_one(
        "SELECT id, repo_id, image, user_id, size FROM registry_uploads WHERE id = $1", upload_id
    )
    return None if row is None else _upload(row)


async def advance(conn: Connection, part: UploadPart) -> bool:
    """Add a part to an upload; False when it does not follow what has arrived."""
    updated = await conn.execute(
        """
        UPDATE registry_uploads SET size = size + $3, changed_at = $4 WHERE id = $1 AND size = $2
        """,
        part.upload_id, part.position, part.size, micros(),
    )  # fmt: skip
    if not updated:
        return False
    await conn.execute(
        """
        INSERT INTO registry_upload_parts (upload_id, position, size, sha256)
        VALUES ($1, $2, $3, $4)
        """,
        part.upload_id, part.position, part.size, part.sha256,
    )  # fmt: skip
    return True


async def list_parts(conn: Reader, upload_id: str) -> list[UploadPart]:
    """Return the parts of an upload in their order."""
    rows = await conn.fetch_all(
        """
        SELECT upload_id, position, size, sha256 FROM registry_upload_parts
        WHERE upload_id = $1 ORDER BY position
        """,
        upload_id,
    )
    return [UploadPart(**dict(row)) for row in rows]


async def remove(conn: Connection, upload_id: str, *, size: int | None = None) -> bool:
    """Remove an upload and its parts; with a size only if no more has arrived since."""
    return (
        await conn.execute(
            "DELETE FROM registry_uploads WHERE id = $1 AND ($2 < 0 OR size = $2)",
            upload_id,
            -1 if size is None else size,
        )
        > 0
    )


async def list_unchanged(conn: Reader, *, before: int, limit: int) -> Sequence[Upload]:
    """Return uploads to which nothing came since then."""
    rows = await conn.fetch_all(
        """
        SELECT id, repo_id, image, user_id, size FROM registry_uploads
        WHERE changed_at < $1 ORDER BY changed_at LIMIT $2
        """,
        before, limit,
    )  # fmt: skip
    return [_upload(row) for row in rows]


def _upload(row: Row) -> Upload:
    return Upload(
        id=row["id"],
        image=ImageKey(repo_id=row["repo_id"], path=row["image"]),
        user_id=row["user_id"],
        size=row["size"],
    )
