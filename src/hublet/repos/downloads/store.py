"""SQL of downloads."""

from collections.abc import Iterable

from hublet.core.database import Connection


async def add_counts(conn: Connection, counts: Iterable[tuple[str, int]]) -> None:
    """Add to the downloads of repositories, by id; one that is gone by now is passed over."""
    await conn.execute_many("UPDATE repos SET downloads = downloads + $2 WHERE id = $1", counts)
