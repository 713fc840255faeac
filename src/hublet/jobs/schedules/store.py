"""SQL of scheduled jobs."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.jobs.records import JobRecord, Stage
from hublet.jobs.request_schemas import or_none
from hublet.jobs.requests import REQUEST_ADAPTER
from hublet.jobs.schedules.records import ScheduledJobRecord, ScheduleRun, ScheduleSkip
from hublet.tokens.delegations import delegation_from_text, delegation_to_text

_COLUMNS = """
    s.id, s.owner_id, s.creator_id, s.delegation, s.resource_group_id, s.spec, s.labels,
    s.secret_names, s.schedule, s.concurrency, s.suspended, s.last_job_id, s.last_job_at,
    s.last_skip_at,
    s.last_skip_reason, s.next_run_at, s.created_at
"""
# These have columns of their own, or are sealed.
_OWN_COLUMNS = {"secrets", "labels", "resourceGroupId"}


async def add(conn: Connection, scheduled: ScheduledJobRecord, *, sealed: bytes | None) -> None:
    request = scheduled.request
    await conn.execute(
        """
        INSERT INTO scheduled_jobs
            (id, owner_id, creator_id, resource_group_id, spec, labels, sealed_secrets,
             secret_names, schedule, concurrency, suspended, next_run_at, created_at, delegation)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
        """,
        scheduled.id, scheduled.owner_id, scheduled.creator_id, or_none(request.resourceGroupId),
        request.model_dump_json(exclude=_OWN_COLUMNS), json.dumps(or_none(request.labels) or {}), sealed,
        json.dumps(scheduled.secret_names), scheduled.schedule, scheduled.concurrency,
        scheduled.suspended, to_micros(scheduled.next_run_at), to_micros(scheduled.created_at),
        delegation_to_text(scheduled.delegation),
    )  # fmt: skip


async def count_of(conn: Reader, *, owner_id: str) -> int:
    count: int = await conn.fetch_value(
        "SELECT count(*) FROM scheduled_jobs WHERE owner_id = $1", owner_id
    )
    return count


async def find(conn: Reader, scheduled_job_id: str, *, owner_id: str) -> ScheduledJobRecord | None:
    row = await conn.fetch_one(
        f"SELECT {_COLUMNS} FROM scheduled_jobs s WHERE s.id = $1 AND s.owner_id = $2",
        scheduled_job_id, owner_id,
    )  # fmt: skip
    return _record(row) if row else None


async def list_of(
    conn: Reader, *, owner_id: str, user_id: str, sees_every_group: bool
) -> list[ScheduledJobRecord]:
    """Return the scheduled jobs of an owner that a user sees, newest first."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS} FROM scheduled_jobs s
        WHERE s.owner_id = $1 AND ($3 OR s.resource_group_id IS NULL OR EXISTS (
            SELECT 1 FROM resource_group_members m
            WHERE m.resource_group_id = s.resource_group_id AND m.user_id = $2
        ))
        ORDER BY s.id DESC
        """,
        owner_id, user_id, sees_every_group,
    )  # fmt: skip
    return [_record(row) for row in rows]


async def find_due(conn: Reader, scheduled_job_id: str, *, at: int) -> ScheduledJobRecord | None:
    """Return a scheduled job that is due at this time, in microseconds; None: not any more."""
    row = await conn.fetch_one(
        f"""
        SELECT {_COLUMNS} FROM scheduled_jobs s
        WHERE s.id = $1 AND s.next_run_at = $2 AND NOT s.suspended
        """,
        scheduled_job_id, at,
    )  # fmt: skip
    return _record(row) if row else None


async def find_sealed(conn: Reader, scheduled_job_id: str) -> bytes | None:
    sealed: bytes | None = await conn.fetch_value(
        "SELECT sealed_secrets FROM scheduled_jobs WHERE id = $1", scheduled_job_id
    )
    return sealed


async def advance(conn: Connection, scheduled: ScheduledJobRecord, *, to: datetime) -> bool:
    """Set the next run; False when another worker did, or it is not due any more."""
    changed = await conn.execute(
        """
        UPDATE scheduled_jobs SET next_run_at = $3
        WHERE id = $1 AND next_run_at = $2 AND NOT suspended
        """,
        scheduled.id, to_micros(scheduled.next_run_at), to_micros(to),
    )  # fmt: skip
    return changed == 1


async def find_running(conn: Reader, scheduled_job_id: str) -> str | None:
    """Return the last job of a schedule if it is not over."""
    job_id: str | None = await conn.fetch_value(
        """
        SELECT j.id FROM scheduled_jobs s JOIN jobs j ON j.id = s.last_job_id
        WHERE s.id = $1 AND j.stage IN each($2)
        """,
        scheduled_job_id, json.dumps([stage for stage in Stage if not stage.is_terminal]),
    )  # fmt: skip
    return job_id


async def set_last_run(conn: Connection, scheduled_job_id: str, job: JobRecord) -> None:
    await conn.execute(
        "UPDATE scheduled_jobs SET last_job_id = $2, last_job_at = $3 WHERE id = $1",
        scheduled_job_id, job.id, to_micros(job.created_at),
    )  # fmt: skip


async def set_last_skip(conn: Connection, scheduled_job_id: str, reason: str) -> None:
    await conn.execute(
        "UPDATE scheduled_jobs SET last_skip_at = $2, last_skip_reason = $3 WHERE id = $1",
        scheduled_job_id, micros(), reason,
    )  # fmt: skip


async def set_times(conn: Connection, scheduled: ScheduledJobRecord) -> None:
    """Keep whether it runs by the clock, and when."""
    await conn.execute(
        "UPDATE scheduled_jobs SET schedule = $2, suspended = $3, next_run_at = $4 WHERE id = $1",
        scheduled.id, scheduled.schedule, scheduled.suspended, to_micros(scheduled.next_run_at),
    )  # fmt: skip


async def set_labels(conn: Connection, scheduled_job_id: str, labels: Mapping[str, str]) -> None:
    await conn.execute(
        "UPDATE scheduled_jobs SET labels = $2 WHERE id = $1",
        scheduled_job_id, json.dumps(labels),
    )  # fmt: skip


async def remove(conn: Connection, scheduled_job_id: str) -> None:
    await conn.execute("DELETE FROM scheduled_jobs WHERE id = $1", scheduled_job_id)


def _record(row: Row) -> ScheduledJobRecord:
    return ScheduledJobRecord(
        id=row["id"],
        owner_id=row["owner_id"],
        creator_id=row["creator_id"],
        delegation=delegation_from_text(row["delegation"], creator_id=row["creator_id"]),
        request=REQUEST_ADAPTER.validate_python(_request_fields(row)),
        secret_names=tuple(json.loads(row["secret_names"])),
        schedule=row["schedule"],
        concurrency=bool(row["concurrency"]),
        suspended=bool(row["suspended"]),
        last_run=_run(row),
        last_skip=_skip(row),
        next_run_at=from_micros(row["next_run_at"]),
        created_at=from_micros(row["created_at"]),
    )


def _request_fields(row: Row) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(row["spec"]) | {"labels": json.loads(row["labels"])}
    group_id = row["resource_group_id"]
    return fields if group_id is None else fields | {"resourceGroupId": group_id}


def _run(row: Row) -> ScheduleRun | None:
    if row["last_job_id"] is None:
        return None
    return ScheduleRun(job_id=row["last_job_id"], at=from_micros(row["last_job_at"]))


def _skip(row: Row) -> ScheduleSkip | None:
    if row["last_skip_at"] is None:
        return None
    return ScheduleSkip(at=from_micros(row["last_skip_at"]), reason=row["last_skip_reason"])
