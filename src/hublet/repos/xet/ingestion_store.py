"""SQL of ingestion: contents that are yet to be cut, and what repositories have of cut ones."""

from collections.abc import Iterable

import msgspec

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.storage import store as storage
from hublet.storage.records import Content


async def find_next_repo(conn: Reader, *, after: str) -> str | None:
    """Return the next repository, by id, that has contents which are yet to be cut."""
    repo_id: str | None = await conn.fetch_value(
        "SELECT min(repo_id) FROM uncut_contents WHERE repo_id > $1", after
    )
    return repo_id


async def list_uncut(conn: Reader, repo_id: str, *, after: str = "", limit: int) -> list[Content]:
    """Return contents of a repository that are yet to be cut, in the order of their digests."""
    rows = await conn.fetch_all(
        """
        SELECT u.sha256 FROM uncut_contents u WHERE u.repo_id = $1 AND u.sha256 > $2 AND (
            EXISTS (SELECT 1 FROM repo_blobs r WHERE r.repo_id = $1 AND r.sha256 = u.sha256)
            OR EXISTS (SELECT 1 FROM repo_files f WHERE f.sha256 = u.sha256 AND f.repo_id = $1)
        )
        ORDER BY u.sha256 LIMIT $3
        """,
        repo_id, after, limit,
    )  # fmt: skip
    digests = [row["sha256"] for row in rows]
    found = await storage.find_contents(conn, digests)
    return [found[digest] for digest in digests if digest in found]


async def find_cut_in_repo(conn: Reader, repo_id: str, digests: Iterable[str]) -> set[str]:
    """Return those contents that a repository holds and has cut."""
    rows = await conn.fetch_all(
        """
        SELECT l.sha256 FROM repo_layouts l WHERE l.repo_id = $1 AND l.sha256 IN each($2) AND (
            EXISTS (SELECT 1 FROM repo_blobs r WHERE r.repo_id = $1 AND r.sha256 = l.sha256)
            OR EXISTS (SELECT 1 FROM repo_files f WHERE f.sha256 = l.sha256 AND f.repo_id = $1)
        )
        """,
        repo_id, _json_array(digests),
    )  # fmt: skip
    return {row["sha256"] for row in rows}


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
        WHERE sha256 IN each($1)
        """,
        _json_array(digests), micros(),
    )  # fmt: skip


async def set_left_whole(conn: Connection, repo_id: str, digests: Iterable[str]) -> None:
    """Let contents wait no longer to be cut."""
    await conn.execute(
        "DELETE FROM uncut_contents WHERE repo_id = $1 AND sha256 IN each($2)",
        repo_id, _json_array(digests),
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
