"""SQL of what attempts left behind."""

from hublet.core.database import Connection, Reader
from hublet.jobs.overseeing.records import Attempt


async def set_removed(conn: Connection, attempt: Attempt, *, at: int) -> None:
    """Give the place of an attempt back; one that nobody saw end has ended by now."""
    await conn.execute(
        """
        UPDATE job_attempts SET removed_at = $3, ended_at = coalesce(ended_at, $3)
        WHERE job_id = $1 AND number = $2
        """,
        attempt.job_id, attempt.number, at,
    )  # fmt: skip


async def list_leftovers(conn: Reader, *, runner: str) -> list[Attempt]:
    """Return attempts whose job went on without them and that were not cleared away."""
    rows = await conn.fetch_all(
        """
        SELECT a.job_id, a.number, a.handle, a.launched_at, a.started_at
        FROM job_attempts a JOIN jobs j ON j.id = a.job_id
        WHERE a.runner = $1 AND a.removed_at IS NULL AND a.handle <> ''
            AND (a.number < j.attempt OR j.stage NOT IN ('SCHEDULING', 'RUNNING'))
        """,
        runner,
    )
    return [
        Attempt(
            job_id=row["job_id"],
            number=row["number"],
            runner=runner,
            handle=row["handle"],
            launched_at=row["launched_at"],
            started_at=row["started_at"],
        )
        for row in rows
    ]


_FORGOTTEN = """
    removed_at IS NULL AND handle = '' AND launched_at < $1 AND EXISTS (
        SELECT 1 FROM jobs j WHERE j.id = job_id AND j.stage NOT IN ('SCHEDULING', 'RUNNING')
    )
"""


async def has_forgotten(conn: Reader, *, before: int) -> bool:
    """Tell whether a launch never came to its end, and its job did long ago."""
    found = await conn.fetch_value(f"SELECT 1 FROM job_attempts WHERE {_FORGOTTEN} LIMIT 1", before)
    return found is not None


async def remove_forgotten(conn: Connection, *, before: int) -> None:
    await conn.execute(
        f"UPDATE job_attempts SET removed_at = launched_at WHERE {_FORGOTTEN}", before
    )


async def list_handles(conn: Reader, *, runner: str) -> set[str]:
    """Return everything that the runner is known to have."""
    rows = await conn.fetch_all(
        "SELECT handle FROM job_attempts WHERE runner = $1 AND removed_at IS NULL", runner
    )
    return {row["handle"] for row in rows}


async def oldest_launch(conn: Reader) -> int | None:
    """Return since when an attempt is being launched; its handle may be there unwritten.

    So it may be where whoever launched it was killed, and nobody has taken its job since.
    """
    since: int | None = await conn.fetch_value(
        """
        SELECT min(a.launched_at) FROM job_attempts a JOIN jobs j ON j.id = a.job_id
        WHERE a.removed_at IS NULL AND a.handle = '' AND a.number = j.attempt
            AND j.stage IN ('SCHEDULING', 'RUNNING')
        """
    )
    return since
