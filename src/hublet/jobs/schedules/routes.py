"""HTTP for scheduled jobs."""

from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.schema import Done
from hublet.jobs.auth import AccessToJobs, AccessToScheduledJob, LabelFilterQuery
from hublet.jobs.presenter import render
from hublet.jobs.schedules import service
from hublet.jobs.schedules.presenter import render_scheduled
from hublet.jobs.schedules.schemas import (
    CreateScheduledJob,
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
