"""SQL of logs in the shared store: how far the log of each attempt is there."""

import json
from collections.abc import Collection

from hublet.core.database import Connection, Reader, Row
from hublet.jobs.records import JOB_LOGS, LogPart, Stage

_COLUMNS = "job_id, attempt, size, lines, ends, block_lines, ended_at, notice, usage"


async def list_parts(conn: Reader, job_id: str) -> list[LogPart]:
    """Return what there is of the log of a job, oldest attempt first."""
    rows = await conn.fetch_all(
        f"SELECT {_COLUMNS} FROM job_logs WHERE job_id = $1 ORDER BY attempt", job_id
    )
    return [_part(row) for row in rows]


async def find_part(conn: Reader, job_id: str, attempt: int) -> LogPart | None:
    row = await conn.fetch_one(
        f"SELECT {_COLUMNS} FROM job_logs WHERE job_id = $1 AND attempt = $2", job_id, attempt
    )
    return None if row is None else _part(row)


async def list_versions(conn: Reader, job_ids: Collection[str]) -> dict[str, tuple[object, ...]]:
    """Return for each job what changes whenever its log in the store does."""
    rows = await conn.fetch_all(
        """
        SELECT job_id, attempt, size, ended_at, usage FROM job_logs
        WHERE job_id IN each($1) ORDER BY job_id, attempt
        """,
        json.dumps(list(job_ids)),
    )
    versions: dict[str, tuple[object, ...]] = {}
    for row in rows:
        versions[row["job_id"]] = (*versions.get(row["job_id"], ()), *tuple(row)[1:])
    return versions


async def add_part(conn: Connection, job_id: str, attempt: int, *, notice: str, at: int) -> None:
    """Begin the log of an attempt; those of earlier ones that nobody ended end here."""
    await conn.execute(
        """
        UPDATE job_logs SET ended_at = $3, notice = CASE WHEN size > 0 THEN $4 ELSE notice END
        WHERE job_id = $1 AND attempt < $2 AND ended_at IS NULL
        """,
        job_id, attempt, at, notice,
    )  # fmt: skip
    await conn.execute(
        """
        INSERT INTO job_logs (job_id, attempt) VALUES ($1, $2)
        ON CONFLICT (job_id, attempt) DO NOTHING
        """,
        job_id, attempt,
    )  # fmt: skip
    conn.wake(JOB_LOGS)


async def advance(conn: Connection, part: LogPart, *, seen_size: int) -> bool:
    """Write how far a log is; False: it has ended, or another got it further meanwhile."""
    changed = await conn.execute(
        """
        UPDATE job_logs SET size = $4, lines = $5, ends = $6, block_lines = $7, ended_at = $8, notice = $9
        WHERE job_id = $1 AND attempt = $2 AND size = $3 AND ended_at IS NULL
        """,
        part.job_id, part.attempt, seen_size, part.size, part.lines, json.dumps(part.ends),
        json.dumps(part.block_lines), part.ended_at, part.notice,
    )  # fmt: skip
    if changed:
        conn.wake(JOB_LOGS)
    return changed == 1


_IS_LEFT = """
    ended_at IS NULL AND EXISTS (
        SELECT 1 FROM jobs j WHERE j.id = job_logs.job_id AND j.finished_at < $1
            AND j.stage NOT IN ('SCHEDULING', 'RUNNING')
    )
"""


async def has_left(conn: Reader, *, finished_before: int) -> bool:
    """Tell whether nobody ended the log of an attempt although its job is over for long."""
    found = await conn.fetch_value(
        f"SELECT 1 FROM job_logs WHERE {_IS_LEFT} LIMIT 1", finished_before
    )
    return found is not None


async def end_left(conn: Connection, *, finished_before: int, notice: str, at: int) -> None:
    """End the logs that nobody ended; those of attempts that began say what is missing."""
    await conn.execute(
        f"""
        UPDATE job_logs SET ended_at = $2, notice = CASE WHEN EXISTS (
            SELECT 1 FROM job_attempts a WHERE a.job_id = job_logs.job_id
                AND a.number = job_logs.attempt AND a.started_at IS NOT NULL
        ) THEN $3 ELSE notice END
        WHERE {_IS_LEFT}
        """,
        finished_before, at, notice,
    )  # fmt: skip
    conn.wake(JOB_LOGS)


async def set_usage(conn: Connection, job_id: str, attempt: int, name: str) -> None:
    await conn.execute(
        "UPDATE job_logs SET usage = $3 WHERE job_id = $1 AND attempt = $2", job_id, attempt, name
    )
    conn.wake(JOB_LOGS)


async def remove_parts(conn: Connection, job_id: str) -> None:
    await conn.execute("DELETE FROM job_logs WHERE job_id = $1", job_id)
    conn.wake(JOB_LOGS)


async def list_stages(conn: Reader, job_ids: Collection[str]) -> dict[str, tuple[Stage, int]]:
    """Return the stage and the attempt of those jobs that there are."""
    rows = await conn.fetch_all(
        "SELECT id, stage, attempt FROM jobs WHERE id IN each($1)", json.dumps(list(job_ids))
    )
    return {row["id"]: (Stage(row["stage"]), row["attempt"]) for row in rows}


def _part(row: Row) -> LogPart:
    return LogPart(
        job_id=row["job_id"],
        attempt=row["attempt"],
        size=row["size"],
        lines=row["lines"],
        ends=tuple(json.loads(row["ends"])),
        block_lines=tuple(json.loads(row["block_lines"])),
        ended_at=row["ended_at"],
        notice=row["notice"],
        usage=row["usage"],
    )
