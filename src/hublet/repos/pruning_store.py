"""SQL of pruning: rows that nothing needs any more.

On PostgreSQL a row is locked before a second statement looks at it again: whoever refers to it
meanwhile waits, or was first and is seen.
"""

from collections.abc import Iterable
from datetime import timedelta

import msgspec

from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.storage.object_store import ObjectKey, layer_part_key

# How long the whole object of a blob that was cut stays: whoever looked it up has opened it then.
WHOLE_AGE = timedelta(hours=1)

_BLOB_IS_UNUSED = """
    NOT EXISTS (SELECT 1 FROM repo_blobs r WHERE r.sha256 = b.sha256)
    AND NOT EXISTS (SELECT 1 FROM repo_files f WHERE f.sha256 = b.sha256)
    AND NOT EXISTS (SELECT 1 FROM attachments a WHERE a.sha256 = b.sha256)
    AND NOT EXISTS (SELECT 1 FROM registry_blobs i WHERE i.sha256 = b.sha256)
    AND NOT EXISTS (SELECT 1 FROM registry_manifests m WHERE m.sha256 = b.sha256)
"""
_XORB_IS_UNUSED = """
    NOT EXISTS (SELECT 1 FROM repo_xorbs l WHERE l.xorb = x.name)
    AND NOT EXISTS (SELECT 1 FROM layout_segments s WHERE s.xorb = x.name)
"""
_LINK_IS_USED = """
    EXISTS (
        SELECT 1 FROM layout_segments s
            JOIN repo_layouts seen ON seen.layout = s.layout AND seen.repo_id = l.repo_id
        WHERE s.xorb = l.xorb AND (
            EXISTS (
                SELECT 1 FROM repo_blobs r WHERE r.repo_id = l.repo_id AND r.sha256 = seen.sha256
            )
            OR EXISTS (
                SELECT 1 FROM repo_files f WHERE f.sha256 = seen.sha256 AND f.repo_id = l.repo_id
            )
        )
    )
"""
_IS_NOT_HELD = """
    NOT EXISTS (SELECT 1 FROM repo_blobs r WHERE r.repo_id = l.repo_id AND r.sha256 = l.sha256)
    AND NOT EXISTS (SELECT 1 FROM repo_files f WHERE f.sha256 = l.sha256 AND f.repo_id = l.repo_id)
"""
# The last layout of a blob stays even if no repository sees it: its bytes may lie nowhere else.
_LAYOUT_IS_UNUSED = """
    NOT EXISTS (SELECT 1 FROM repo_layouts r WHERE r.layout = l.id)
    AND EXISTS (
        SELECT 1 FROM layouts o JOIN repo_layouts r ON r.layout = o.id WHERE o.sha256 = l.sha256
    )
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedBlob:
    sha256: str
    size: int
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedXorb:
    name: str
    chunks: int
    stored_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class XorbLink:
    """That a repository's uploads may use a xorb."""

    repo_id: str
    xorb: str
    unused_since: int | None
    # Whether a content of the repository has a piece of it now.
    is_used: bool


async def remove_registrations(conn: Connection, *, before: int, limit: int) -> int:
    """Remove what was uploaded to repositories before then, and that nothing took; return how many.

    What a file of a bucket shows is taken.
    """
    return await conn.execute(
        """
        DELETE FROM repo_blobs WHERE is_used = FALSE AND (repo_id, sha256) IN (
            SELECT r.repo_id, r.sha256 FROM repo_blobs r
            WHERE r.is_used = FALSE AND r.pushed_at < $1 AND NOT EXISTS (
                SELECT 1 FROM repo_files f WHERE f.sha256 = r.sha256 AND f.repo_id = r.repo_id
            )
            LIMIT $2
        )
        """,
        before, limit,
    )  # fmt: skip


async def remove_blobs(conn: Connection, *, before: int, limit: int) -> list[RemovedBlob]:
    """Remove the rows of old blobs that nothing points to, with their layouts."""
    rows = await conn.claim(
        f"""
        SELECT b.sha256 FROM blobs b WHERE b.created_at < $1 AND {_BLOB_IS_UNUSED}
        LIMIT $2 /* claim */
        """,
        before, limit,
    )  # fmt: skip
    removed = await conn.fetch_all(
        f"""
        DELETE FROM blobs AS b WHERE b.sha256 IN each($1) AND {_BLOB_IS_UNUSED}
        RETURNING sha256, size, is_whole
        """,
        _json_array(row["sha256"] for row in rows),
    )
    return [
        RemovedBlob(sha256=row["sha256"], size=row["size"], is_whole=bool(row["is_whole"]))
        for row in removed
    ]


async def remove_unheld(conn: Connection, *, before: int, limit: int) -> int:
    """Remove what repositories see of contents that they do not hold any more; return how many.

    What was added since then stays: a file is about to show it.
    """
    await conn.execute(f"DELETE FROM uncut_contents AS l WHERE {_IS_NOT_HELD}")
    return await conn.execute(
        f"""
        DELETE FROM repo_layouts WHERE added_at < $1 AND (repo_id, xet_hash) IN (
            SELECT l.repo_id, l.xet_hash FROM repo_layouts l
            WHERE l.added_at < $1 AND {_IS_NOT_HELD} LIMIT $2
        )
        """,
        before, limit,
    )  # fmt: skip


async def remove_layouts(conn: Connection, *, limit: int) -> int:
    """Remove layouts that no repository sees, of blobs that are seen otherwise; return how many."""
    rows = await conn.claim(
        f"SELECT l.id FROM layouts l WHERE {_LAYOUT_IS_UNUSED} LIMIT $1 /* claim */", limit
    )
    return await conn.execute(
        f"DELETE FROM layouts AS l WHERE l.id IN each($1) AND {_LAYOUT_IS_UNUSED}",
        _json_array(row["id"] for row in rows),
    )


async def list_links(
    conn: Reader, *, after: tuple[str, str] = ("", ""), limit: int
) -> list[XorbLink]:
    rows = await conn.fetch_all(
        f"""
        SELECT l.repo_id, l.xorb, l.unused_since, {_LINK_IS_USED} AS is_used
        FROM repo_xorbs l WHERE (l.repo_id, l.xorb) > ($1, $2)
        ORDER BY l.repo_id, l.xorb LIMIT $3
        """,
        *after, limit,
    )  # fmt: skip
    return [
        XorbLink(
            repo_id=row["repo_id"],
            xorb=row["xorb"],
            unused_since=row["unused_since"],
            is_used=bool(row["is_used"]),
        )
        for row in rows
    ]


async def set_unused_since(conn: Connection, links: Iterable[XorbLink], since: int | None) -> None:
    await conn.execute_many(
        "UPDATE repo_xorbs SET unused_since = $3 WHERE repo_id = $1 AND xorb = $2",
        [(link.repo_id, link.xorb, since) for link in links],
    )


async def remove_links(
    conn: Connection, *, unused_before: int, arrived_before: int, limit: int
) -> int:
    """Remove links that are unused since before then, with their chunks; return how many.

    A xorb that arrived again since stays: an upload may be about to use it.
    """
    return await conn.execute(
        """
        DELETE FROM repo_xorbs WHERE unused_since < $1 AND (repo_id, xorb) IN (
            SELECT l.repo_id, l.xorb FROM repo_xorbs l JOIN xorbs x ON x.name = l.xorb
            WHERE l.unused_since < $1 AND x.created_at < $2 LIMIT $3
        )
        """,
        unused_before, arrived_before, limit,
    )  # fmt: skip


async def remove_xorbs(conn: Connection, *, before: int, limit: int) -> list[RemovedXorb]:
    """Remove the rows of xorbs that arrived before then, and that nothing uses."""
    rows = await conn.claim(
        f"""
        SELECT x.name FROM xorbs x WHERE x.created_at < $1 AND {_XORB_IS_UNUSED}
        LIMIT $2 /* claim */
        """,
        before, limit,
    )  # fmt: skip
    removed = await conn.fetch_all(
        f"""
        DELETE FROM xorbs AS x WHERE x.name IN each($1) AND {_XORB_IS_UNUSED}
        RETURNING name, chunks, stored_size
        """,
        _json_array(row["name"] for row in rows),
    )
    return [RemovedXorb(**dict(row)) for row in removed]


async def find_needed(
    conn: Reader, kind: str, digests: Iterable[str], *, cut_before: int
) -> set[str]:
    """Return those digests whose objects are needed: xorbs, and blobs unless they were cut."""
    sql = {
        "blobs": """
            SELECT sha256 FROM blobs
            WHERE sha256 IN each($1) AND (is_whole = TRUE OR created_at >= $2)
            """,
        "xorbs": "SELECT name FROM xorbs WHERE name IN each($1)",
    }
    values = (cut_before,) if kind == "blobs" else ()
    rows = await conn.fetch_all(sql[kind], _json_array(digests), *values)
    return {row[0] for row in rows}


async def list_layer_parts(conn: Reader) -> set[ObjectKey]:
    """Return the parts of all blobs that are still pushed to the registry, which ends those at rest."""
    rows = await conn.fetch_all("SELECT upload_id, position, sha256 FROM registry_upload_parts")
    return {
        layer_part_key(row["upload_id"], position=row["position"], sha256=row["sha256"])
        for row in rows
    }


def _json_array(texts: Iterable[str]) -> str:
    return msgspec.json.encode(list(texts)).decode()
