"""SQL of attempts, and of a job's transition from stage to stage."""

from dataclasses import replace

from hublet.core.clock import from_micros, micros
from hublet.core.database import Connection, Reader, Row
from hublet.core.outbox import publish
from hublet.events import JobEnded
from hublet.jobs.records import JOBS, JobRecord, Stage
from hublet.jobs.stages import Trigger, next_stage
from hublet.jobs.store import JOB_COLUMNS, add_event, job_record
from hublet.runtime.supervisor.records import AttemptRecord, HeldJob, StageChange

_FAILURES = frozenset({Trigger.failed, Trigger.exhausted, Trigger.timed_out})

_ATTEMPT = """
    a.number AS a_number, a.runner AS a_runner, a.handle AS a_handle,
    a.launched_at AS a_launched_at, a.started_at AS a_started_at
"""
_IS_ACTIVE = "j.stage IN ('SCHEDULING', 'RUNNING')"
_THIS_ATTEMPT = "a.job_id = j.id AND a.number = j.attempt"


async def transition(conn: Connection, job: JobRecord, change: StageChange) -> JobRecord | None:
    """Bring a job to where a trigger leads, with its attempt, its event and the fact.

    None, and nothing was done, when the job changed since it was read or goes nowhere from here.
    """
    stage = next_stage(job.stage, change.trigger)
    if stage is None:
        return None
    again = change.trigger is Trigger.failed
    failures = int(change.trigger in _FAILURES)
    now = micros()
    changed = await conn.execute(
        """
        UPDATE jobs SET stage = $3, message = $4, version = version + 1,
            failure_count = failure_count + $5, attempt = attempt + $6,
            started_at = coalesce(started_at, $7), finished_at = coalesce(finished_at, $8),
            running_micros = running_micros + $9, due_at = $10,
            claimed_by = CASE WHEN $11 THEN NULL ELSE claimed_by END,
            claimed_until = CASE WHEN $11 THEN NULL ELSE claimed_until END,
            sealed_secrets = CASE WHEN $12 THEN NULL ELSE sealed_secrets END
        WHERE id = $1 AND version = $2
        """,
        job.id, job.version, stage, change.message, failures, int(again), change.started_at,
        _finished_at(change, now) if stage.is_terminal else None, change.ran,
        None if stage.is_terminal else now + change.wait,
        stage.is_terminal or change.lets_go, stage is Stage.deleted,
    )  # fmt: skip
    if not changed:
        return None
    await _set_attempt(conn, job, change)
    told = replace(job, stage=stage, message=change.message)
    if (told.stage, told.message) != (job.stage, job.message):
        await add_event(conn, told)
    if stage.is_terminal and not job.stage.is_terminal:
        await publish(conn, _ended_event(told))
    conn.wake(JOBS)
    started_at = None if change.started_at is None else from_micros(change.started_at)
    return replace(
        told,
        version=job.version + 1,
        failure_count=job.failure_count + failures,
        attempt=job.attempt + again,
        started_at=job.started_at or started_at,
        running_micros=job.running_micros + change.ran,
    )


def _finished_at(change: StageChange, now: int) -> int:
    """Return when a job ended: what ended while nobody looked did not end only now."""
    return now if change.ending is None else change.ending.ended_at or now


async def _set_attempt(conn: Connection, job: JobRecord, change: StageChange) -> None:
    ending = change.ending
    if change.started_at is not None:
        await conn.execute(
            "UPDATE job_attempts SET started_at = $3 WHERE job_id = $1 AND number = $2",
            job.id, job.attempt, change.started_at,
        )  # fmt: skip
    if ending is not None:
        await conn.execute(
            """
            UPDATE job_attempts SET ended_at = $3, exit_code = $4, reason = $5, removed_at = $6
            WHERE job_id = $1 AND number = $2
            """,
            job.id, job.attempt, ending.ended_at, ending.exit_code, ending.reason,
            ending.ended_at if ending.leaves_nothing else None,
        )  # fmt: skip


def _ended_event(job: JobRecord) -> JobEnded:
    return JobEnded(
        job_id=job.id,
        owner_id=job.owner_id,
        creator_id=job.creator_id,
        name=job.labels.get("name"),
        stage=job.stage,
        message=job.message,
    )


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
