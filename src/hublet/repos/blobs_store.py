"""SQL of the blobs that repositories may point to, and of attachments."""

from collections.abc import Iterable

import msgspec

from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader
from hublet.repos.records import Attachment, LinkedBlob
from hublet.storage import store as contents
from hublet.storage.records import Blob, Content


async def link(
    conn: Connection, repo_id: str, digests: Iterable[str], *, is_used: bool = True
) -> None:
    """Give a repository the right to point to these blobs.

    What nothing uses yet is only registered, and goes when nothing takes it in time.
    """
    await conn.execute_many(
        """
        INSERT INTO repo_blobs (repo_id, sha256, pushed_at, is_used) VALUES ($1, $2, $3, $4)
        ON CONFLICT (repo_id, sha256) DO UPDATE SET
            is_used = repo_blobs.is_used OR excluded.is_used,
            pushed_at = CASE WHEN repo_blobs.is_used
                THEN repo_blobs.pushed_at ELSE excluded.pushed_at END
        """,
        [(repo_id, digest, micros(), is_used) for digest in digests],
    )


async def set_used(conn: Connection, repo_id: str, digests: Iterable[str]) -> set[str]:
    """Keep blobs that a repository may point to, because it does now; return those it has."""
    rows = await conn.fetch_all(
        """
        UPDATE repo_blobs SET is_used = TRUE WHERE repo_id = $1 AND sha256 IN each($2)
        RETURNING sha256
        """,
        repo_id, _json_array(digests),
    )  # fmt: skip
    return {row["sha256"] for row in rows}


async def link_those_of(conn: Connection, repo_id: str, *, source_id: str) -> None:
    """Give a repository the right to point to all blobs that another one points to."""
    await conn.execute(
        """
        INSERT INTO repo_blobs (repo_id, sha256, pushed_at)
        SELECT $1, sha256, $3 FROM repo_blobs WHERE repo_id = $2 AND is_used = TRUE
        """,
        repo_id, source_id, micros(),
    )  # fmt: skip


async def find_in_repo(conn: Reader, repo_id: str, digests: Iterable[str]) -> dict[str, Blob]:
    """Return, by digest, those blobs that the repository may point to."""
    rows = await conn.fetch_all(
        """
        SELECT b.sha256, b.size, b.git_sha1
        FROM repo_blobs r JOIN blobs b ON b.sha256 = r.sha256
        WHERE r.repo_id = $1 AND r.sha256 IN each($2)
        """,
        repo_id, _json_array(digests),
    )  # fmt: skip
    return {row["sha256"]: Blob(**dict(row)) for row in rows}


async def find_contents_in_repo(
    conn: Reader, repo_id: str, digests: Iterable[str]
) -> dict[str, Content]:
    """Return, by digest, where the bytes of those blobs lie that the repository may point to."""
    return await contents.find_contents(conn, await find_in_repo(conn, repo_id, digests))


async def find_xet_hashes(conn: Reader, repo_id: str, digests: Iterable[str]) -> dict[str, str]:
    """Return the file hashes of Xet, by digest, of those blobs of the repository that have one."""
    rows = await conn.fetch_all(
        """
        SELECT b.sha256, b.xet_hash FROM repo_blobs r JOIN blobs b ON b.sha256 = r.sha256
        WHERE r.repo_id = $1 AND r.sha256 IN each($2) AND b.xet_hash IS NOT NULL
        """,
        repo_id, _json_array(digests),
    )  # fmt: skip
    return {row["sha256"]: row["xet_hash"] for row in rows}


async def list_of_repo(
    conn: Reader, repo_id: str, *, after: str = "", limit: int
) -> list[LinkedBlob]:
    """Return the blobs that a repository may point to, in the order of their digests."""
    rows = await conn.fetch_all(
        """
        SELECT b.sha256, b.size, r.pushed_at
        FROM repo_blobs r JOIN blobs b ON b.sha256 = r.sha256
        WHERE r.repo_id = $1 AND r.sha256 > $2 ORDER BY r.sha256 LIMIT $3
        """,
        repo_id, after, limit,
    )  # fmt: skip
    return [
        LinkedBlob(sha256=row["sha256"], size=row["size"], pushed_at=from_micros(row["pushed_at"]))
        for row in rows
    ]


async def unlink(conn: Connection, repo_id: str, digests: Iterable[str]) -> int:
    """Take from a repository the right to point to these blobs; return how many it had."""
    return await conn.execute(
        "DELETE FROM repo_blobs WHERE repo_id = $1 AND sha256 IN each($2)",
        repo_id,
        _json_array(digests),
    )


def _json_array(digests: Iterable[str]) -> str:
    return msgspec.json.encode(list(digests)).decode()


async def add_attachment(conn: Connection, attachment: Attachment) -> None:
    await conn.execute(
        """
        INSERT INTO attachments (name, user_id, sha256, size, media_type, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        """,
        attachment.name, attachment.user_id, attachment.sha256, attachment.size,
        attachment.media_type, to_micros(attachment.created_at),
    )  # fmt: skip


async def find_attachment(conn: Reader, name: str) -> Attachment | None:
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
