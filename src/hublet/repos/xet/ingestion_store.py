"""SQL of ingestion: contents that are yet to be cut, and what repositories have of cut ones."""

from collections.abc import Iterable

import msgspec

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UncutContent:
    sha256: str
    size: int
    # One of the repositories that have it.
    repo_id: str


async def list_uncut(conn: Reader, *, after: str = "", limit: int) -> list[UncutContent]:
    """Return contents of repositories that are not cut yet, in the order of their digests."""
    rows = await conn.fetch_all(
        """
        SELECT sha256, size, repo_id FROM (
            SELECT b.sha256, b.size, coalesce(
                (SELECT min(r.repo_id) FROM repo_blobs r WHERE r.sha256 = b.sha256),
                (SELECT min(f.repo_id) FROM repo_files f WHERE f.sha256 = b.sha256)
            ) AS repo_id
            FROM blobs b WHERE b.xet_hash IS NULL AND b.sha256 > $1
        ) AS uncut
        WHERE repo_id IS NOT NULL ORDER BY sha256 LIMIT $2
        """,
        after, limit,
    )  # fmt: skip
    return [UncutContent(**dict(row)) for row in rows]


async def find_holders(conn: Reader, digests: Iterable[str]) -> dict[str, set[str]]:
    """Return, by repository, which of these contents it has."""
    rows = await conn.fetch_all(
        """
        SELECT repo_id, sha256 FROM repo_blobs WHERE sha256 IN each($1)
        UNION SELECT repo_id, sha256 FROM repo_files WHERE sha256 IN each($1)
        """,
        _json_array(digests),
    )
    holders: dict[str, set[str]] = {}
    for row in rows:
        holders.setdefault(row["repo_id"], set()).add(row["sha256"])
    return holders


async def find_promising_xorbs(conn: Reader, repo_id: str, chunks: Iterable[str]) -> set[str]:
    """Return the repository's xorbs with these chunks, and those that follow them in a file."""
    rows = await conn.fetch_all(
        "SELECT xorb, next_xorbs FROM repo_chunks WHERE repo_id = $1 AND chunk IN each($2)",
        repo_id, _json_array(chunks),
    )  # fmt: skip
    return {
        xorb
        for row in rows
        for xorb in (row["xorb"], *msgspec.json.decode(row["next_xorbs"], type=list[str]))
    }


async def set_cut(conn: Connection, digests: Iterable[str]) -> None:
    """Read contents from their segments from now on; their objects may go after a while."""
    await conn.execute(
        """
        UPDATE blobs SET is_whole = FALSE, created_at = $2
        WHERE sha256 IN each($1) AND xet_hash IS NOT NULL
        """,
        _json_array(digests), micros(),
    )  # fmt: skip


async def find_cut(conn: Reader, digests: Iterable[str], *, before: int) -> set[str]:
    """Return those contents that have been read from segments since then."""
    rows = await conn.fetch_all(
        """
        SELECT sha256 FROM blobs
        WHERE sha256 IN each($1) AND is_whole = FALSE AND created_at < $2
        """,
        _json_array(digests), before,
    )  # fmt: skip
    return {row["sha256"] for row in rows}


def _json_array(texts: Iterable[str]) -> str:
    return msgspec.json.encode(list(texts)).decode()
