"""SQL of blobs."""

from collections.abc import Iterable

import msgspec

from hublet.core.clock import from_micros, micros
from hublet.core.database import Connection, Reader
from hublet.repos.blobs.records import Blob, LinkedBlob


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
        repo_id, _json(digests),
    )  # fmt: skip
    return {row["sha256"]: Blob(**dict(row)) for row in rows}


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
    """Take from a repository the right to point to these blobs; return to how many it had one."""
    return await conn.execute(
        "DELETE FROM repo_blobs WHERE repo_id = $1 AND sha256 IN each($2)", repo_id, _json(digests)
    )


async def remove_unused(conn: Connection, *, before: int, limit: int) -> list[str]:
    """Forget old blobs that nothing points to; return their digests."""
    rows = await conn.fetch_all(
        """
        DELETE FROM blobs WHERE sha256 IN (
            SELECT b.sha256 FROM blobs b
            WHERE b.created_at < $1
                AND NOT EXISTS (SELECT 1 FROM repo_blobs r WHERE r.sha256 = b.sha256)
                AND NOT EXISTS (SELECT 1 FROM repo_files f WHERE f.sha256 = b.sha256)
                AND NOT EXISTS (SELECT 1 FROM attachments a WHERE a.sha256 = b.sha256)
            ORDER BY b.sha256 LIMIT $2
        )
        RETURNING sha256
        """,
        before, limit,
    )  # fmt: skip
    return [row["sha256"] for row in rows]


async def find_known(conn: Reader, digests: Iterable[str]) -> set[str]:
    """Return those digests that stand for a blob of this hub."""
    rows = await conn.fetch_all("SELECT sha256 FROM blobs WHERE sha256 IN each($1)", _json(digests))
    return {row["sha256"] for row in rows}


def _json(digests: Iterable[str]) -> str:
    return msgspec.json.encode(list(digests)).decode()
