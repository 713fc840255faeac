"""SQL of scrubbing: which objects were not checked for long, and which are damaged."""

from collections.abc import Iterable

from hublet.core.clock import from_micros, micros
from hublet.core.database import Connection, Reader, Row
from hublet.core.dataclasses import dataclass
from hublet.repos.records import DamagedObject
from hublet.repos.store import OWNER
from hublet.storage import store as storage
from hublet.storage.records import Xorb
from hublet.storage.xorbs import XorbLayout

_MOST_NAMED = 20
# The digests of the blobs that a damaged object is a part of.
_CONCERNED = {
    "blobs": "SELECT sha256 FROM blobs WHERE sha256 = $1",
    "xorbs": """
        SELECT l.sha256 FROM layout_segments s JOIN layouts l ON l.id = s.layout WHERE s.xorb = $1
        """,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectAtRest:
    kind: str
    digest: str
    # Bytes at rest; of a xorb those of its chunks, behind which the footer lies.
    size: int


async def list_unchecked(conn: Reader, *, before: int, limit: int) -> list[ObjectAtRest]:
    """Return objects that were not checked since then, the longest unchecked first."""
    rows = await conn.fetch_all(
        """
        SELECT kind, digest, size FROM (
            SELECT * FROM (
                SELECT 'blobs' AS kind, sha256 AS digest, size,
                    coalesce(checked_at, created_at) AS checked
                FROM blobs WHERE is_whole = TRUE AND coalesce(checked_at, created_at) < $1
                ORDER BY coalesce(checked_at, created_at) LIMIT $2
            ) AS oldest_blobs
            UNION ALL
            SELECT * FROM (
                SELECT 'xorbs' AS kind, name AS digest, stored_size AS size,
                    coalesce(checked_at, created_at) AS checked
                FROM xorbs WHERE coalesce(checked_at, created_at) < $1
                ORDER BY coalesce(checked_at, created_at) LIMIT $2
            ) AS oldest_xorbs
        ) AS oldest ORDER BY checked, digest LIMIT $2
        """,
        before, limit,
    )  # fmt: skip
    return [ObjectAtRest(**dict(row)) for row in rows]


async def list_damaged_at_rest(conn: Reader) -> list[ObjectAtRest]:
    """Return the objects that are known to be damaged."""
    rows = await conn.fetch_all(
        """
        SELECT d.kind, d.digest, coalesce(b.size, x.stored_size, 0) AS size FROM damaged_objects d
        LEFT JOIN blobs b ON d.kind = 'blobs' AND b.sha256 = d.digest
        LEFT JOIN xorbs x ON d.kind = 'xorbs' AND x.name = d.digest
        ORDER BY d.kind, d.digest
        """
    )
    return [ObjectAtRest(**dict(row)) for row in rows]


async def is_needed(conn: Reader, each: ObjectAtRest) -> bool:
    """Tell whether an object should be there: it may have gone since it was listed."""
    sql = {
        "blobs": "SELECT 1 FROM blobs WHERE sha256 = $1 AND is_whole = TRUE",
        "xorbs": "SELECT 1 FROM xorbs WHERE name = $1",
    }
    return await conn.fetch_value(sql[each.kind], each.digest) is not None


async def set_checked(conn: Connection, each: ObjectAtRest) -> None:
    sql = {
        "blobs": "UPDATE blobs SET checked_at = $2 WHERE sha256 = $1",
        "xorbs": "UPDATE xorbs SET checked_at = $2 WHERE name = $1",
    }
    await conn.execute(sql[each.kind], each.digest, micros())


async def add_damaged(conn: Connection, each: ObjectAtRest, problem: str) -> None:
    await conn.execute(
        """
        INSERT INTO damaged_objects (kind, digest, problem, found_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (kind, digest) DO UPDATE SET problem = excluded.problem
        """,
        each.kind, each.digest, problem, micros(),
    )  # fmt: skip


async def list_damaged_forms(conn: Reader, xorb: str) -> list[str]:
    """Return the names of damaged objects that have the chunks of a xorb."""
    rows = await conn.fetch_all(
        """
        SELECT x.name FROM xorbs x JOIN damaged_objects d ON d.kind = 'xorbs' AND d.digest = x.name
        WHERE x.hash = $1 ORDER BY x.name
        """,
        xorb,
    )
    return [row["name"] for row in rows]


async def replace_xorb(conn: Connection, name: str, form: Xorb, layout: XorbLayout) -> None:
    """Let a sound form of the same chunks take the place of a damaged one, which is itself or another."""
    if name != form.name:
        await storage.move_segments(conn, name, form, layout)
        await conn.execute(
            """
            INSERT INTO repo_xorbs (repo_id, xorb, unused_since)
            SELECT repo_id, $2, unused_since FROM repo_xorbs WHERE xorb = $1
            ON CONFLICT (repo_id, xorb) DO NOTHING
            """,
            name, form.name,
        )  # fmt: skip
        await conn.execute("UPDATE repo_chunks SET xorb = $2 WHERE xorb = $1", name, form.name)
        await unlink_xorb(conn, name)
    await remove_damaged(conn, "xorbs", name)


async def remove_damaged(conn: Connection, kind: str, digest: str) -> None:
    await conn.execute("DELETE FROM damaged_objects WHERE kind = $1 AND digest = $2", kind, digest)


async def count_damaged(conn: Reader) -> int:
    return int(await conn.fetch_value("SELECT count(*) FROM damaged_objects"))


async def list_damaged(conn: Reader, *, limit: int) -> list[DamagedObject]:
    """Return damaged objects with the repositories that have content in them, oldest first."""
    rows = await conn.fetch_all(
        """
        SELECT kind, digest, problem, found_at FROM damaged_objects
        ORDER BY found_at, digest LIMIT $1
        """,
        limit,
    )
    return [await _damaged(conn, row) for row in rows]


async def _damaged(conn: Reader, row: Row) -> DamagedObject:
    return DamagedObject(
        kind=row["kind"],
        digest=row["digest"],
        problem=row["problem"],
        found_at=from_micros(row["found_at"]),
        repos=tuple(await names_of_repos(conn, row["kind"], row["digest"])),
    )


async def names_of_repos(conn: Reader, kind: str, digest: str) -> list[str]:
    """Return the names of repositories, a few at most, that have content in an object."""
    rows = await conn.fetch_all(
        f"""
        SELECT DISTINCT coalesce(owning_user.name, owning_org.name) AS owner_name, r.name
        FROM (
            SELECT repo_id FROM repo_blobs WHERE sha256 IN ({_CONCERNED[kind]})
            UNION SELECT repo_id FROM repo_files WHERE sha256 IN ({_CONCERNED[kind]})
        ) AS holders JOIN repos r ON r.id = holders.repo_id {OWNER}
        ORDER BY 1, 2 LIMIT {_MOST_NAMED}
        """,
        digest,
    )
    return [f"{row['owner_name']}/{row['name']}" for row in rows]


async def list_layouts_in_xorb(conn: Reader, xorb: str) -> dict[str, list[str]]:
    """Return, by blob, the layouts that have a piece of a stored xorb."""
    rows = await conn.fetch_all(
        """
        SELECT sha256, id FROM layouts
        WHERE id IN (SELECT layout FROM layout_segments WHERE xorb = $1) ORDER BY sha256, id
        """,
        xorb,
    )
    layouts: dict[str, list[str]] = {}
    for row in rows:
        layouts.setdefault(row["sha256"], []).append(row["id"])
    return layouts


async def replace_layouts(conn: Connection, layouts: Iterable[str], other: str) -> None:
    """Let repositories see another layout of a blob instead of these, which go."""
    for layout in layouts:
        await conn.execute("UPDATE repo_layouts SET layout = $2 WHERE layout = $1", layout, other)
        await conn.execute("DELETE FROM layouts WHERE id = $1", layout)


async def set_cut(conn: Connection, sha256: str) -> None:
    """Let a blob be read from its segments only."""
    await conn.execute("UPDATE blobs SET is_whole = FALSE WHERE sha256 = $1", sha256)


async def set_uncut(conn: Connection, digests: Iterable[str]) -> None:
    """Let blobs be read from their whole objects only; they are cut again later."""
    for sha256 in digests:
        await conn.execute(
            "UPDATE blobs SET is_whole = TRUE, checked_at = $2 WHERE sha256 = $1", sha256, micros()
        )
        await conn.execute("DELETE FROM layouts WHERE sha256 = $1", sha256)
        await conn.execute(
            """
            INSERT INTO uncut_contents (repo_id, sha256)
            SELECT repo_id, sha256 FROM (
                SELECT repo_id, sha256 FROM repo_blobs WHERE sha256 = $1
                UNION SELECT repo_id, sha256 FROM repo_files WHERE sha256 = $1
            ) AS held WHERE TRUE
            ON CONFLICT (repo_id, sha256) DO NOTHING
            """,
            sha256,
        )


async def unlink_xorb(conn: Connection, xorb: str) -> None:
    """Let no upload use a xorb any more, until it is uploaded again."""
    await conn.execute("DELETE FROM repo_xorbs WHERE xorb = $1", xorb)
