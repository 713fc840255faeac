"""SQL of jobs as their owners know them; `service.transition` alone calls `set_stage`."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import msgspec

from hublet.accounts.records import Owner, OwnerType
from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.core.ids import new_object_id
from hublet.core.tracing import current_traceparent
from hublet.jobs.records import (
    Initiator,
    InitiatorType,
    JobDetails,
    JobRecord,
    MeasuredAttempt,
    PastAttempt,
    Ports,
    Spec,
    Stage,
    StageEvent,
)
from hublet.jobs.stages import StageChange
from hublet.tokens.delegations import delegation_from_text, delegation_to_text

# Where jobs are called `j`; `job_record` reads it.
JOB_COLUMNS = """
    j.id, j.owner_id, j.creator_id, j.delegation, j.resource_group_id, j.initiator_type,
    j.initiator_id, j.spec, j.labels, j.expose, j.secret_names, j.stage, j.message,
    j.cancel_reason, j.failure_count,
    j.version, j.attempt, j.cancel_requested_at, j.created_at, j.started_at, j.finished_at,
    j.running_micros
"""


async def add(conn: Connection, job: JobRecord, *, sealed: bytes | None, key: str | None) -> bool:
    """Add a job that is due now; False when there is one of this key."""
    created_at = to_micros(job.created_at)
    added = await conn.execute(
        """
        INSERT INTO jobs
            (id, owner_id, creator_id, resource_group_id, initiator_type, initiator_id, key, spec,
             labels, expose, sealed_secrets, secret_names, stage, message, due_at, created_at,
             delegation, trace)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15, $16, $17)
        ON CONFLICT (key) DO NOTHING
        """,
        job.id, job.owner_id, job.creator_id, job.resource_group_id, job.initiator.type,
        job.initiator.id, key, _spec_json(job.spec), json.dumps(job.labels), _ports_json(job.expose),
        sealed, json.dumps(job.secret_names), job.stage, job.message, created_at,
        delegation_to_text(job.delegation), current_traceparent(),
    )  # fmt: skip
    if not added:
        return False
    await _add_labels(conn, job.id, job.owner_id, job.labels)
    await add_event(conn, job)
    return True


async def add_event(conn: Connection, job: JobRecord) -> None:
    """Add the stage and message that a job has now to its events."""
    await conn.execute(
        """
        INSERT INTO job_events (id, job_id, stage, message, attempt, at)
        VALUES ($1, $2, $3, $4, $5, $6)
        """,
        new_object_id(), job.id, job.stage, job.message, job.attempt, micros(),
    )  # fmt: skip


async def find(conn: Reader, job_id: str, *, owner_id: str) -> JobRecord | None:
    row = await conn.fetch_one(
        f"SELECT {JOB_COLUMNS} FROM jobs j WHERE j.id = $1 AND j.owner_id = $2", job_id, owner_id
    )
    return job_record(row) if row else None


async def find_by_key(conn: Reader, key: str) -> JobRecord | None:
    row = await conn.fetch_one(f"SELECT {JOB_COLUMNS} FROM jobs j WHERE j.key = $1", key)
    return job_record(row) if row else None


async def find_trace(conn: Reader, job_id: str) -> str | None:
    """Return the span in which a job was asked for, as `tracing.span` takes it."""
    trace: str | None = await conn.fetch_value("SELECT trace FROM jobs WHERE id = $1", job_id)
    return trace


async def find_sealed(conn: Reader, job_id: str) -> bytes | None:
    sealed: bytes | None = await conn.fetch_value(
        "SELECT sealed_secrets FROM jobs WHERE id = $1", job_id
    )
    return sealed


async def find_details(conn: Reader, job_ids: Sequence[str]) -> dict[str, JobDetails]:
    """Return what a response says beyond the record, by the id of the job."""
    rows = await conn.fetch_all(
        """
        SELECT j.id, u.name, a.started_at FROM jobs j JOIN users u ON u.id = j.creator_id
        LEFT JOIN job_attempts a ON a.job_id = j.id AND a.number = j.attempt
        WHERE j.id IN each($1)
        """,
        json.dumps(job_ids),
    )
    return {
        row["id"]: JobDetails(
            creator_name=row["name"], attempt_started_at=_optional_time(row["started_at"])
        )
        for row in rows
    }


async def set_labels(conn: Connection, job: JobRecord, labels: Mapping[str, str]) -> None:
    await conn.execute("UPDATE jobs SET labels = $2 WHERE id = $1", job.id, json.dumps(labels))
    await conn.execute("DELETE FROM job_labels WHERE job_id = $1", job.id)
    await _add_labels(conn, job.id, job.owner_id, labels)


async def _add_labels(
    conn: Connection, job_id: str, owner_id: str, labels: Mapping[str, str]
) -> None:
    await conn.execute_many(
        "INSERT INTO job_labels (job_id, name, value, owner_id) VALUES ($1, $2, $3, $4)",
        [(job_id, name, value, owner_id) for name, value in labels.items()],
    )


async def set_expose(conn: Connection, job_id: str, expose: Ports | None) -> None:
    await conn.execute("UPDATE jobs SET expose = $2 WHERE id = $1", job_id, _ports_json(expose))


async def request_cancel(conn: Connection, job_id: str) -> bool:
    """Request the cancellation of a job; False when it is over.

    The new version makes a concurrent `set_stage` fail.
    """
    return await conn.execute(
        """
        UPDATE jobs SET cancel_requested_at = coalesce(cancel_requested_at, $2), due_at = $2,
            version = version + 1
        WHERE id = $1 AND stage IN ('SCHEDULING', 'RUNNING')
        """,
        job_id, micros(),
    ) == 1  # fmt: skip


async def set_stage(
    conn: Connection, job: JobRecord, stage: Stage, change: StageChange, *, at: int
) -> bool:
    """Write the stage a change leads to, with the job's counts; False: it changed since it was read."""
    is_over = stage.is_terminal
    # What ended while nobody looked did not end only now.
    ended_at = at if change.ending is None else change.ending.ended_at or at
    return await conn.execute(
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
        job.id, job.version, stage, change.message, int(change.is_failure), int(change.is_retry),
        change.started_at, ended_at if is_over else None, change.ran,
        None if is_over else at + change.wait, is_over or change.releases_lease, stage is Stage.deleted,
    ) == 1  # fmt: skip


async def set_attempt_times(conn: Connection, job: JobRecord, change: StageChange) -> None:
    """Write when the attempt that a job is at began and ended, as far as the change says so."""
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
            ending.ended_at if ending.never_began else None,
        )  # fmt: skip


async def list_events(conn: Reader, job_id: str) -> list[StageEvent]:
    """Return the events of a job, oldest first; ids of several processes are not in order."""
    rows = await conn.fetch_all(
        """
        SELECT id, stage, message, attempt, at FROM job_events
        WHERE job_id = $1 ORDER BY at, id
        """,
        job_id,
    )
    return [
        StageEvent(
            id=row["id"],
            stage=Stage(row["stage"]),
            message=row["message"],
            attempt=row["attempt"],
            at=from_micros(row["at"]),
        )
        for row in rows
    ]


async def list_attempts(conn: Reader, job_id: str) -> list[PastAttempt]:
    """Return the attempts of a job, oldest first."""
    rows = await conn.fetch_all(
        """
        SELECT number, launched_at, started_at, ended_at, exit_code, reason FROM job_attempts
        WHERE job_id = $1 ORDER BY number
        """,
        job_id,
    )
    return [
        PastAttempt(
            number=row["number"],
            launched_at=from_micros(row["launched_at"]),
            started_at=_optional_time(row["started_at"]),
            ended_at=_optional_time(row["ended_at"]),
            exit_code=row["exit_code"],
            reason=row["reason"],
        )
        for row in rows
    ]


async def find_owner(conn: Reader, owner_id: str) -> Owner | None:
    row = await conn.fetch_one("SELECT id, name, type FROM owners WHERE id = $1", owner_id)
    return Owner(id=row["id"], name=row["name"], type=OwnerType(row["type"])) if row else None


def job_record(row: Row) -> JobRecord:
    return JobRecord(
        id=row["id"],
        owner_id=row["owner_id"],
        creator_id=row["creator_id"],
        delegation=delegation_from_text(row["delegation"], creator_id=row["creator_id"]),
        resource_group_id=row["resource_group_id"],
        initiator=Initiator(type=InitiatorType(row["initiator_type"]), id=row["initiator_id"]),
        spec=msgspec.json.decode(row["spec"], type=Spec),
        labels=json.loads(row["labels"]),
        expose=None if row["expose"] is None else msgspec.json.decode(row["expose"], type=Ports),
        secret_names=tuple(json.loads(row["secret_names"])),
        stage=Stage(row["stage"]),
        message=row["message"],
        cancel_reason=row["cancel_reason"],
        failure_count=row["failure_count"],
        version=row["version"],
        attempt=row["attempt"],
        cancel_requested_at=_optional_time(row["cancel_requested_at"]),
        created_at=from_micros(row["created_at"]),
        started_at=_optional_time(row["started_at"]),
        finished_at=_optional_time(row["finished_at"]),
        running_micros=row["running_micros"],
    )


def _optional_time(value: int | None) -> datetime | None:
    return None if value is None else from_micros(value)


def _spec_json(spec: Spec) -> str:
    return msgspec.json.encode(spec).decode()


def _ports_json(ports: Ports | None) -> str | None:
    return None if ports is None else msgspec.json.encode(ports).decode()


async def list_finished(conn: Reader, job_ids: Collection[str]) -> set[str]:
    """Return those of the jobs that are over, or do not exist any more."""
    # A copy: the caller may add to its collection during the query.
    checked = set(job_ids)
    rows = await conn.fetch_all(
        "SELECT id FROM jobs WHERE id IN each($1) AND stage IN each($2)",
        json.dumps(list(checked)), json.dumps([s for s in Stage if not s.is_terminal]),
    )  # fmt: skip
    return checked - {row["id"] for row in rows}


async def find_measured_attempt(conn: Reader, job_id: str) -> MeasuredAttempt | None:
    row = await conn.fetch_one(
        """
        SELECT j.id, j.stage, j.spec, j.attempt, a.runner, a.handle, a.machine_id FROM jobs j
        LEFT JOIN job_attempts a
            ON a.job_id = j.id AND a.number = j.attempt AND a.ended_at IS NULL
        WHERE j.id = $1
        """,
        job_id,
    )
    if row is None:
        return None
    return MeasuredAttempt(
        job_id=row["id"],
        stage=Stage(row["stage"]),
        flavor=msgspec.json.decode(row["spec"], type=Spec).flavor,
        attempt=row["attempt"],
        runner=row["runner"],
        handle=row["handle"] or None,
        machine_id=row["machine_id"],
    )


async def list_specs_in_use(conn: Reader) -> list[str]:
    """Return the spec of every job that is not over, as it is stored."""
    rows = await conn.fetch_all("SELECT spec FROM jobs WHERE stage IN ('SCHEDULING', 'RUNNING')")
    return [row["spec"] for row in rows]
