"""SQL of ingestion: contents that are yet to be cut, and what repositories have of cut ones."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.storage.records import Xorb

# As many as the answer to a chunk query names.
_MOST_FOLLOWING = 15


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


async def count_uncut(conn: Reader) -> tuple[int, int]:
    """Return how many contents of repositories are not cut yet, and their bytes."""
    row = await conn.fetch_one(
        """
        SELECT count(*) AS contents, coalesce(sum(b.size), 0) AS bytes FROM blobs b
        WHERE b.xet_hash IS NULL AND (
            EXISTS (SELECT 1 FROM repo_blobs r WHERE r.sha256 = b.sha256)
            OR EXISTS (SELECT 1 FROM repo_files f WHERE f.sha256 = b.sha256)
        )
        """
    )
    return (0, 0) if row is None else (row["contents"], int(row["bytes"]))


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


async def find_promising_xorbs(conn: Reader, repo_id: str, chunks: Iterable[str]) -> list[Xorb]:
    """Return the repository's xorbs with these chunks, and those that follow them in a file."""
    rows = await conn.fetch_all(
        "SELECT xorb, next_xorbs FROM repo_chunks WHERE repo_id = $1 AND chunk IN each($2)",
        repo_id, _json_array(chunks),
    )  # fmt: skip
    hashes = {
        xorb
        for row in rows
        for xorb in (row["xorb"], *msgspec.json.decode(row["next_xorbs"], type=list[str]))
    }
    found = await conn.fetch_all(
        """
        SELECT x.hash, x.chunks, x.size, x.stored_size
        FROM repo_xorbs r JOIN xorbs x ON x.hash = r.xorb
        WHERE r.repo_id = $1 AND r.xorb IN each($2) ORDER BY x.created_at DESC, x.hash
        """,
        repo_id, _json_array(hashes),
    )  # fmt: skip
    return [Xorb(**dict(row)) for row in found]


async def link_xorbs(conn: Connection, repo_id: str, hashes: Iterable[str]) -> None:
    """Give xorbs to a repository whose contents have all of their chunks, if it still exists."""
    await conn.execute(
        """
        INSERT INTO repo_xorbs (repo_id, xorb)
        SELECT r.id, x.hash FROM repos r, xorbs x WHERE r.id = $1 AND x.hash IN each($2)
        ON CONFLICT (repo_id, xorb) DO UPDATE SET unused_since = NULL
        """,
        repo_id, _json_array(hashes),
    )  # fmt: skip


async def index_chunks(
    conn: Connection, repo_id: str, chunks: Mapping[str, str], *, xorbs: Sequence[str]
) -> None:
    """Let clients find chunks of a content, given their xorbs and all xorbs of it in their order."""
    following = {
        xorb: _json_array(xorbs[at + 1 : at + 1 + _MOST_FOLLOWING]) for at, xorb in enumerate(xorbs)
    }
    await conn.execute_many(
        """
        INSERT INTO repo_chunks (repo_id, chunk, xorb, next_xorbs)
        SELECT repo_id, $2, xorb, $4 FROM repo_xorbs WHERE repo_id = $1 AND xorb = $3
        ON CONFLICT (repo_id, chunk) DO UPDATE SET
            xorb = excluded.xorb, next_xorbs = excluded.next_xorbs
        """,
        [(repo_id, chunk, xorb, following[xorb]) for chunk, xorb in sorted(chunks.items())],
    )


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
