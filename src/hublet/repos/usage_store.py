"""SQL of usage: the bytes that repositories hold, and the bytes at rest that they need."""

from hublet.core.database import Reader
from hublet.repos.records import Repo, RepoUsage, StorageUsage
from hublet.repos.store import COLUMNS, OWNER, record

# Each different content of a repository, and each file of a bucket. For git repositories, which can
# have very many, one index has all that is summed.
_RAW = """
    SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM (
        SELECT h.size FROM repos r JOIN repo_blobs h ON h.repo_id = r.id
        WHERE {scope} AND r.type NOT IN ('bucket', 'container') AND {counted}
        UNION ALL
        SELECT h.size FROM repos r JOIN repo_blobs h ON h.repo_id = r.id
        WHERE {scope} AND r.type IN ('bucket', 'container') AND {counted} AND NOT EXISTS (
            SELECT 1 FROM repo_files f WHERE f.sha256 = h.sha256 AND f.repo_id = h.repo_id
        )
        UNION ALL
        SELECT r.size FROM repos r WHERE {scope} AND r.type IN ('bucket', 'container')
        UNION ALL
        -- What arrived of blobs that are still pushed.
        SELECT u.size FROM repos r JOIN registry_uploads u ON u.repo_id = r.id
        WHERE {scope} AND {arriving}
    ) AS held
"""
_ALL = {"counted": "TRUE", "arriving": "TRUE"}
_USED = {"counted": "h.is_used = TRUE", "arriving": "FALSE"}
# Which repositories of an owner need which objects; a xorb is needed whole. A content that the
# repository has not cut counts as one object, even where it lies in pieces because others cut it.
_NEEDED = """
    WITH held AS (
        SELECT h.repo_id, h.sha256 FROM repos r JOIN repo_blobs h ON h.repo_id = r.id
        WHERE r.owner_id = $1
        UNION
        SELECT f.repo_id, f.sha256 FROM repos r JOIN repo_files f ON f.repo_id = r.id
        WHERE r.owner_id = $1
    ), needed AS (
        SELECT held.repo_id, b.sha256 AS digest, b.size FROM held
            JOIN blobs b ON b.sha256 = held.sha256
        WHERE NOT EXISTS (
            SELECT 1 FROM repo_layouts l WHERE l.repo_id = held.repo_id AND l.sha256 = held.sha256
        )
        UNION
        SELECT held.repo_id, x.name, x.stored_size FROM held
            JOIN repo_layouts l ON l.repo_id = held.repo_id AND l.sha256 = held.sha256
            JOIN layout_segments s ON s.layout = l.layout JOIN xorbs x ON x.name = s.xorb
        UNION
        SELECT l.repo_id, x.name, x.stored_size FROM repos r
            JOIN repo_xorbs l ON l.repo_id = r.id JOIN xorbs x ON x.name = l.xorb
        WHERE r.owner_id = $1
    ), objects AS (
        SELECT digest, max(size) AS size, count(*) AS holders FROM needed GROUP BY digest
    )
"""
_SUMS = """
    CAST(coalesce(sum(CASE WHEN o.holders = 1 THEN o.size ELSE 0 END), 0) AS BIGINT) AS stored,
    CAST(coalesce(sum(CASE WHEN o.holders > 1 THEN o.size ELSE 0 END), 0) AS BIGINT) AS shared
"""


async def raw_of_owner(conn: Reader, owner_id: str, *, with_uploads: bool = True) -> int:
    """Return the raw bytes of an owner's repositories, with uploads that nothing took or without."""
    sql = _RAW.format(scope="r.owner_id = $1", **(_ALL if with_uploads else _USED))
    return int(await conn.fetch_value(sql, owner_id))


async def raw_of_repo(conn: Reader, repo_id: str) -> int:
    sql = _RAW.format(scope="r.id = $1", **_ALL)
    return int(await conn.fetch_value(sql, repo_id))


async def usage_of_owner(conn: Reader, owner_id: str) -> StorageUsage:
    row = await conn.fetch_one(f"{_NEEDED} SELECT {_SUMS} FROM objects o", owner_id)
    stored, shared = row or (0, 0)
    return StorageUsage(raw=await raw_of_owner(conn, owner_id), stored=stored, shared=shared)


async def usage_of_repo(conn: Reader, repo_id: str, *, owner_id: str) -> StorageUsage:
    row = await conn.fetch_one(
        f"""
        {_NEEDED}
        SELECT {_SUMS} FROM needed n JOIN objects o ON o.digest = n.digest WHERE n.repo_id = $2
        """,
        owner_id, repo_id,
    )  # fmt: skip
    stored, shared = row or (0, 0)
    return StorageUsage(raw=await raw_of_repo(conn, repo_id), stored=stored, shared=shared)


async def list_owners(conn: Reader) -> list[tuple[str, str]]:
    """Return the id and the name of every owner of a repository, by name."""
    rows = await conn.fetch_all(
        f"""
        SELECT DISTINCT r.owner_id, coalesce(owning_user.name, owning_org.name) AS owner_name
        FROM repos r {OWNER} ORDER BY 2
        """
    )
    return [(row["owner_id"], row["owner_name"]) for row in rows]


async def list_repos(conn: Reader, owner_name: str) -> list[RepoUsage]:
    """Return the usage of each repository of an owner, by type and name."""
    rows = await conn.fetch_all(
        f"""
        SELECT r.id, r.type, r.name, r.owner_id, coalesce(owning_user.name, owning_org.name) AS owner_name
        FROM repos r {OWNER} WHERE coalesce(owning_user.name, owning_org.name) = $1
        ORDER BY r.type, r.name
        """,
        owner_name,
    )
    return [
        RepoUsage(
            type=row["type"],
            name=f"{row['owner_name']}/{row['name']}",
            usage=await usage_of_repo(conn, row["id"], owner_id=row["owner_id"]),
        )
        for row in rows
    ]


async def list_largest_owners(conn: Reader, *, limit: int) -> list[tuple[str, int, int]]:
    """Return the name, the raw bytes and the repositories of those who hold most, the largest first.

    Contents that buckets hold and no file names, as of uploads that nothing took, do not count.
    """
    rows = await conn.fetch_all(
        f"""
        SELECT coalesce(owning_user.name, owning_org.name) AS owner_name,
            CAST(sum(held.size) AS BIGINT) AS raw, count(*) AS repositories
        FROM repos r JOIN (
            SELECT r.id, CASE WHEN r.type IN ('bucket', 'container') THEN r.size ELSE coalesce(
                (SELECT sum(h.size) FROM repo_blobs h WHERE h.repo_id = r.id), 0) END AS size
            FROM repos r
        ) AS held ON held.id = r.id {OWNER}
        GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT $1
        """,
        limit,
    )
    return [(row["owner_name"], row["raw"], row["repositories"]) for row in rows]


# The bytes that came on each day, of what is still held; a day is counted from 1970.
_DAILY = """
    SELECT day, CAST(sum(size) AS BIGINT) AS size FROM (
        SELECT h.pushed_at / 86400000000 AS day, h.size
        FROM repos r JOIN repo_blobs h ON h.repo_id = r.id
        WHERE r.owner_id = $1 AND r.type NOT IN ('bucket', 'container')
        UNION ALL
        SELECT f.uploaded_at / 86400000000 AS day, f.size
        FROM repos r JOIN repo_files f ON f.repo_id = r.id
        WHERE r.owner_id = $1 AND r.type IN ('bucket', 'container')
    ) AS came GROUP BY day ORDER BY day
"""


async def list_daily_growth(conn: Reader, owner_id: str) -> list[tuple[int, int]]:
    """Return on which days the content came that an owner has now, and how many raw bytes."""
    return [(row["day"], row["size"]) for row in await conn.fetch_all(_DAILY, owner_id)]


async def list_raw_by_repo(
    conn: Reader, owner_id: str, *, group_id: str = ""
) -> list[tuple[Repo, int]]:
    """Return the repositories of an owner with the raw bytes that each holds, largest first.

    With `group_id` only those in this resource group.
    """
    rows = await conn.fetch_all(
        f"""
        SELECT {COLUMNS}, CASE WHEN r.type IN ('bucket', 'container') THEN r.size ELSE (
            SELECT CAST(coalesce(sum(h.size), 0) AS BIGINT) FROM repo_blobs h WHERE h.repo_id = r.id
        ) END AS raw
        FROM repos r {OWNER} WHERE r.owner_id = $1 AND ($2 = '' OR r.resource_group_id = $2)
        ORDER BY raw DESC, r.id
        """,
        owner_id,
        group_id,
    )
    return [(record(row), row["raw"]) for row in rows]


async def owner_name(conn: Reader, owner_id: str) -> str | None:
    name: str | None = await conn.fetch_value(
        """
        SELECT coalesce(
            (SELECT name FROM users WHERE id = $1), (SELECT name FROM organizations WHERE id = $1)
        )
        """,
        owner_id,
    )
    return name


async def totals(conn: Reader) -> dict[str, int]:
    """Return the raw bytes of all repositories, and the bytes at rest, whole and in xorbs."""
    return {
        "raw": int(await conn.fetch_value(_RAW.format(scope="TRUE", **_ALL))),
        "blobs": await _sum(conn, "SELECT sum(size) FROM blobs WHERE is_whole = TRUE"),
        "xorbs": await _sum(conn, "SELECT sum(stored_size) FROM xorbs"),
    }


async def _sum(conn: Reader, sql: str) -> int:
    return int(await conn.fetch_value(sql) or 0)


async def count_uncut(conn: Reader) -> int:
    """Return how many contents of repositories are not cut yet."""
    count: int = await conn.fetch_value("SELECT count(*) FROM uncut_contents")
    return count
