"""SQL of what jobs that are not over mount."""

from hublet.core.database import Reader


async def specs_in_use(conn: Reader) -> list[str]:
    """Return what is to run of every job that is not over, as it is stored."""
    rows = await conn.fetch_all("SELECT spec FROM jobs WHERE stage IN ('SCHEDULING', 'RUNNING')")
    return [row["spec"] for row in rows]
