"""SQL of attempts: what a worker holds, the handles of runners, and leftovers."""

from hublet.core.database import Connection, Reader, Row
from hublet.jobs.store import JOB_COLUMNS, job_record
from hublet.runtime.supervisor.records import AttemptRecord, HeldJob

_ATTEMPT = """
    a.number AS a_number, a.runner AS a_runner, a.handle AS a_handle,
    a.launched_at AS a_launched_at, a.started_at AS a_started_at
"""
_IS_ACTIVE = "j.stage IN ('SCHEDULING', 'RUNNING')"
_THIS_ATTEMPT = "a.job_id = j.id AND a.number = j.attempt"


async def find_held(conn: Reader, job_id: str, *, worker: str) -> HeldJob | None:
    """Return a job that goes on and that this worker holds."""
    row = await conn.fetch_one(
        f"""
        SELECT {JOB_COLUMNS}, {_ATTEMPT} FROM jobs j LEFT JOIN job_attempts a ON {_THIS_ATTEMPT}
        WHERE j.id = $1 AND j.claimed_by = $2 AND {_IS_ACTIVE}
        """,
        job_id, worker,
    )  # fmt: skip
    return None if row is None else HeldJob(job=job_record(row), attempt=_attempt(row))


async def set_handle(conn: Connection, attempt: AttemptRecord, handle: str, *, runner: str) -> None:
    """Keep what the runner calls an attempt, also when its job went on without it meanwhile."""
    await conn.execute(
        """
        UPDATE job_attempts SET handle = $3, runner = $4, removed_at = NULL
        WHERE job_id = $1 AND number = $2
        """,
        attempt.job_id, attempt.number, handle, runner,
    )  # fmt: skip


async def list_canceled(conn: Reader, *, worker: str) -> list[str]:
    """Return what this worker holds and somebody wants to end."""
    rows = await conn.fetch_all(
        f"""
        SELECT j.id FROM jobs j
        WHERE j.claimed_by = $1 AND j.cancel_requested_at IS NOT NULL AND {_IS_ACTIVE}
        """,
        worker,
    )
    return [row["id"] for row in rows]


def _attempt(row: Row) -> AttemptRecord | None:
    if row["a_number"] is None:
        return None
    return AttemptRecord(
        job_id=row["id"],
        number=row["a_number"],
        runner=row["a_runner"],
        handle=row["a_handle"],
        launched_at=row["a_launched_at"],
        started_at=row["a_started_at"],
    )


async def set_removed(conn: Connection, attempt: AttemptRecord, *, at: int) -> None:
    """Give the place of an attempt back; one that nobody saw end has ended by now."""
    await conn.execute(
        """
        UPDATE job_attempts SET removed_at = $3, ended_at = coalesce(ended_at, $3)
        WHERE job_id = $1 AND number = $2
        """,
        attempt.job_id, attempt.number, at,
    )  # fmt: skip


async def list_leftovers(conn: Reader, *, runner: str) -> list[AttemptRecord]:
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
        AttemptRecord(
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
