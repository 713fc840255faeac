"""HTTP for scheduled jobs, and the presenter that makes a response of a record."""

from typing import Any

from hublet.core.config import Settings
from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.schema import Done
from hublet.jobs.access import JobAccess
from hublet.jobs.auth import AccessToJobs, AccessToScheduledJob, LabelFilterQuery
from hublet.jobs.presenter import owner_fields, render, tags_from
from hublet.jobs.request_schemas import or_none
from hublet.jobs.schedules import service
from hublet.jobs.schedules.records import ScheduledJobRecord
from hublet.jobs.schedules.schemas import (
    CreateScheduledJob,
    PublicClientScheduledJob,
    ScheduledJob,
    ScheduledJobResponse,
    UpdateSchedule,
)
from hublet.jobs.schemas import JobResponse, UpdateLabels

router = Router(tags=["jobs"])

_ALL = "/api/scheduled-jobs/{namespace}"
_ONE = f"{_ALL}/{{scheduled_job_id}}"


@router.post(_ALL, responses={409: {"description": "The owner has too many scheduled jobs."}})
async def create_scheduled_job(
    database: Db, access: AccessToJobs, body: CreateScheduledJob
) -> ScheduledJobResponse:
    """Run a job again and again: at the times that five fields of cron name, in UTC.

    Times that pass while the hub is away are made up for by one job. Without `concurrency` a time
    is skipped while the job before goes on. A scheduled job has neither SSH nor a network group.
    """
    scheduled = await service.add(database, access, body)
    return render_scheduled(scheduled, access, database.hub.settings)


@router.get(_ALL)
async def list_scheduled_jobs(
    conn: ReadConn, access: AccessToJobs, labels: LabelFilterQuery
) -> list[ScheduledJobResponse]:
    """List all scheduled jobs, newest first."""
    listed = await service.list_of(conn, access, labels)
    return [render_scheduled(each, access, conn.hub.settings) for each in listed]


@router.get(_ONE)
async def get_scheduled_job(
    conn: ReadConn, access: AccessToScheduledJob, scheduled_job_id: str
) -> ScheduledJobResponse:
    """Show a scheduled job: what it runs, when it ran, when it runs next."""
    scheduled = await service.get(conn, access, scheduled_job_id)
    return render_scheduled(scheduled, access, conn.hub.settings)


@router.delete(_ONE)
async def delete_scheduled_job(
    conn: Conn, access: AccessToScheduledJob, scheduled_job_id: str
) -> Done:
    """Delete a scheduled job; the jobs that it started stay."""
    await service.remove(conn, access, scheduled_job_id)
    return Done()


@router.post(f"{_ONE}/suspend")
async def suspend_scheduled_job(
    conn: Conn, access: AccessToScheduledJob, scheduled_job_id: str
) -> ScheduledJobResponse:
    """Start no more jobs by the clock until it is resumed."""
    changed = await service.set_suspended(conn, access, scheduled_job_id, suspended=True)
    return render_scheduled(changed, access, conn.hub.settings)


@router.post(f"{_ONE}/resume")
async def resume_scheduled_job(
    conn: Conn, access: AccessToScheduledJob, scheduled_job_id: str
) -> ScheduledJobResponse:
    """Go on; the times that passed meanwhile are not made up for."""
    changed = await service.set_suspended(conn, access, scheduled_job_id, suspended=False)
    return render_scheduled(changed, access, conn.hub.settings)


@router.post(f"{_ONE}/schedule")
async def update_scheduled_job_schedule(
    conn: Conn, access: AccessToScheduledJob, scheduled_job_id: str, body: UpdateSchedule
) -> ScheduledJobResponse:
    """Change the times at which it runs."""
    changed = await service.set_schedule(conn, access, scheduled_job_id, body.schedule)
    return render_scheduled(changed, access, conn.hub.settings)


@router.post(
    f"{_ONE}/run", responses={409: {"description": "Its last job is not over, one at a time."}}
)
async def trigger_scheduled_job(
    database: Db, access: AccessToScheduledJob, scheduled_job_id: str
) -> JobResponse:
    """Run it now, in the caller's name; the times at which it runs stay as they are."""
    job = await service.trigger(database, access, scheduled_job_id)
    async with database.read() as conn:
        return await render(conn, access, job)


@router.put(f"{_ONE}/labels")
async def update_scheduled_job_labels(
    conn: Conn, access: AccessToScheduledJob, scheduled_job_id: str, body: UpdateLabels
) -> ScheduledJobResponse:
    """Replace all labels of a scheduled job: those of the jobs that it starts from now on."""
    changed = await service.set_labels(conn, access, scheduled_job_id, body.labels)
    return render_scheduled(changed, access, conn.hub.settings)


def render_scheduled(
    scheduled: ScheduledJobRecord, access: JobAccess, settings: Settings
) -> ScheduledJob:
    spec = _spec(scheduled, settings)
    fields = {
        "id": scheduled.id,
        "owner": owner_fields(access),
        "jobSpec": spec,
        "createdAt": scheduled.created_at,
        "schedule": scheduled.schedule,
        "suspend": scheduled.suspended,
        "concurrency": scheduled.concurrency,
        "status": _status(scheduled),
    }
    if not access.for_public_client:
        return ScheduledJob.model_validate(fields)
    fields["jobSpec"] = spec | {"labels": or_none(scheduled.request.labels) or {}}
    return PublicClientScheduledJob.model_validate(fields)


def _spec(scheduled: ScheduledJobRecord, settings: Settings) -> dict[str, Any]:
    """Return what each run asks for; of its secrets only the names."""
    request = scheduled.request
    fields: dict[str, Any] = {
        "spaceId": or_none(request.spaceId),
        "dockerImage": or_none(request.dockerImage),
        "command": or_none(request.command),
        "arguments": or_none(request.arguments),
        "environment": request.environment,
        "secrets": dict.fromkeys(scheduled.secret_names) or None,
        "flavor": request.flavor,
        "arch": or_none(request.arch),
        "timeout": request.timeoutSeconds or settings.jobs.timeout_seconds,
        "retry": request.attempts - 1,
        "tags": tags_from(or_none(request.labels) or {}),
        "volumes": or_none(request.volumes),
        "expose": or_none(request.expose),
        "resourceGroupId": or_none(request.resourceGroupId),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _status(scheduled: ScheduledJobRecord) -> dict[str, Any]:
    run, skip = scheduled.last_run, scheduled.last_skip
    fields: dict[str, Any] = {
        "lastJob": run and {"id": run.job_id, "at": run.at},
        "nextJobRunAt": None if scheduled.suspended else scheduled.next_run_at,
    }
    return fields | ({"lastSkip": {"at": skip.at, "reason": skip.reason}} if skip else {})
