"""SQL of blobs."""

from collections.abc import Iterable

import msgspec

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.repos.blobs.records import Blob


async def add(conn: Connection, blobs: Iterable[Blob]) -> None:
    """Note that these blobs lie in the folder."""
    await conn.execute_many(
        """
        INSERT INTO blobs (sha256, size, git_sha1, created_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (sha256) DO UPDATE SET git_sha1 = coalesce(excluded.git_sha1, blobs.git_sha1)
        """,
        [(blob.sha256, blob.size, blob.git_sha1, micros()) for blob in blobs],
    )


async def link(conn: Connection, repo_id: str, digests: Iterable[str]) -> None:
    """Note that a repository brought these blobs along, and may point to them."""
    await conn.execute_many(
        """
        INSERT INTO repo_blobs (repo_id, sha256, pushed_at) VALUES ($1, $2, $3)
        ON CONFLICT DO NOTHING
        """,
        [(repo_id, digest, micros()) for digest in digests],
    )


async def find_in_repo(conn: Reader, repo_id: str, digests: Iterable[str]) -> dict[str, Blob]:
    """Return, by digest, those blobs that the repository may point to."""
    rows = await conn.fetch_all(
        """
        SELECT b.sha256, b.size, b.git_sha1
        FROM repo_blobs r JOIN blobs b ON b.sha256 = r.sha256
        WHERE r.repo_id = $1 AND r.sha256 IN each($2)
        """,
        repo_id, msgspec.json.encode(list(digests)).decode(),
    )  # fmt: skip
    return {row["sha256"]: Blob(**dict(row)) for row in rows}
