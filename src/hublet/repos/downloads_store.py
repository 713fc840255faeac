"""SQL of downloads, counted in all and by day."""

from collections.abc import Iterable

from hublet.core.database import Connection, Reader


async def add_downloads(conn: Connection, counts: Iterable[tuple[str, int]]) -> None:
    """Add to the downloads of repositories, by id; one that is gone by now is skipped."""
    await conn.execute_many("UPDATE repos SET downloads = downloads + $2 WHERE id = $1", counts)


async def add_daily_downloads(
    conn: Connection, counts: Iterable[tuple[str, int]], *, day: int
) -> None:
    """Add to the downloads of one day; those repositories must be locked, or be gone."""
    await conn.execute_many(
        """
        INSERT INTO repo_downloads (repo_id, day, count)
        SELECT r.id, $3, $2 FROM repos r WHERE r.id = $1
        ON CONFLICT (repo_id, day) DO UPDATE SET count = repo_downloads.count + excluded.count
        """,
        [(repo_id, count, day) for repo_id, count in counts],
    )


async def list_daily_downloads(conn: Reader, repo_id: str, *, since: int) -> dict[int, int]:
    """Return the downloads by day, from a day on; days without any are left out."""
    rows = await conn.fetch_all(
        "SELECT day, count FROM repo_downloads WHERE repo_id = $1 AND day >= $2", repo_id, since
    )
    return {row["day"]: row["count"] for row in rows}


async def remove_daily_downloads(conn: Connection, *, before: int) -> None:
    await conn.execute("DELETE FROM repo_downloads WHERE day < $1", before)
