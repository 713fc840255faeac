"""HTTP for jobs: run, list, inspect, change, follow; and the event stream of a job: each stage and message."""

import asyncio
from collections.abc import AsyncGenerator
from functools import partial

from fastapi import Request
from starlette.responses import Response

from hublet.core.clock import monotonic
from hublet.core.database import Database
from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.http.event_streams import EVENT_STREAM_RESPONSES, CheckAccess, EventStream
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.schema import Done
from hublet.jobs import hardware, list_store, service, store
from hublet.jobs.access import check_may_run
from hublet.jobs.auth import (
    AccessToJob,
    AccessToJobs,
    JobAvailability,
    JobFilterQuery,
    JobUsageMeter,
    recheck_access,
)
from hublet.jobs.logs.routes import router as logs_router
from hublet.jobs.metrics import follow_metrics
from hublet.jobs.presenter import render, render_all
from hublet.jobs.records import JOBS, StageEvent
from hublet.jobs.request_schemas import Expose, JobRequest
from hublet.jobs.schedules.routes import router as schedules_router
from hublet.jobs.schemas import (
    Hardware,
    JobAuthorization,
    JobCount,
    JobEvent,
    JobPermission,
    JobResponse,
    UpdateLabels,
)

KEEP_ALIVE_SECONDS = 30.0
# The channel wakes for every job; so often at most this one is read.
_LEAST_PAUSE_SECONDS = 0.1
_STOP_LOOK_SECONDS = 1.0


async def follow_events(
    database: Database, job_id: str, *, check_access: CheckAccess, stopping: asyncio.Event
) -> AsyncGenerator[str]:
    """Yield every event of a job so far, then those that come, until the job is over.

    The access is checked with each keep-alive.
    """
    sent, spoke_at = set[str](), monotonic()
    with database.subscribe(JOBS) as changes:
        while not stopping.is_set():
            async with database.read() as conn:
                events = await store.list_events(conn, job_id)
            for event in events:
                if event.id not in sent:
                    yield _event(event)
                    sent.add(event.id)
                    spoke_at = monotonic()
            if any(event.stage.is_terminal for event in events):
                return
            if monotonic() >= spoke_at + KEEP_ALIVE_SECONDS:
                await check_access()
                yield ": keep-alive\n\n"
                spoke_at = monotonic()
            await changes.wait(timeout=_STOP_LOOK_SECONDS)
            await asyncio.sleep(_LEAST_PAUSE_SECONDS)


def _event(event: StageEvent) -> str:
    return f"event: status\nid: {event.id}\ndata: {JobEvent.of(event).model_dump_json()}\n\n"


router = Router(tags=["jobs"])
metrics_router = Router(tags=["jobs"])

_JOBS = "/api/jobs/{namespace}"
_JOB = f"{_JOBS}/{{job_id}}"


@router.get("/api/jobs/hardware", openapi_extra={"security": []})
async def list_job_hardware(conn: ReadConn) -> list[Hardware]:
    """List the flavors that this hub offers, each with its size; nothing here costs anything."""
    return hardware.list_hardware(conn.hub.settings)


@router.post(_JOBS)
async def run_job(
    database: Db, access: AccessToJobs, availability: JobAvailability, body: JobRequest
) -> JobResponse:
    """Run a job: a command in an image, or what a space runs.

    It waits in the stage SCHEDULING until there is room for it. Organizations have jobs too:
    their contributors may run them.
    """
    await service.prepare(database, availability, access, body)
    async with database.transaction() as conn:
        return await render(conn, access, await service.start(conn, access, body))


@router.get(_JOBS, responses=PAGED_RESPONSES)
async def list_jobs(
    conn: ReadConn, access: AccessToJobs, job_filter: JobFilterQuery, page: PageQuery
) -> list[JobResponse]:
    """List jobs, newest first, page by page; deleted ones only when their stage is asked for."""
    listed = await list_store.list_of(conn, job_filter, before=page.after, limit=page.reach)
    jobs = page.cut(listed, position=lambda job: job.id)
    return await render_all(conn, access, jobs)


@router.get(f"{_JOBS}/count")
async def count_jobs(conn: ReadConn, job_filter: JobFilterQuery) -> JobCount:
    """Count what the list with the same filters has."""
    return JobCount(count=await list_store.count_of(conn, job_filter))


@router.post(f"{_JOBS}/auth-check/{{permission}}")
async def check_access_to_jobs(
    conn: ReadConn, access: AccessToJobs, permission: JobPermission
) -> JobAuthorization:
    """Tell whether the caller may see the jobs under a name, or run some."""
    if permission is JobPermission.write:
        await check_may_run(conn, access, None)
    return JobAuthorization.of(access.owner, access.caller)


@router.post(f"{_JOB}/auth-check/{{permission}}")
async def check_access_to_job(
    conn: ReadConn, access: AccessToJob, job_id: str, permission: JobPermission
) -> JobAuthorization:
    """Tell whether the caller may see a job, or cancel, label and delete it."""
    get = service.get_to_change if permission is JobPermission.write else service.get
    await get(conn, access, job_id)
    return JobAuthorization.of(access.owner, access.caller)


@router.get(_JOB)
async def get_job(conn: ReadConn, access: AccessToJob, job_id: str) -> JobResponse:
    """Show a job."""
    return await render(conn, access, await service.get(conn, access, job_id))


@router.post(f"{_JOB}/cancel", responses={409: {"description": "The job was deleted."}})
async def cancel_job(conn: Conn, access: AccessToJob, job_id: str) -> JobResponse:
    """Ask a job to end; it is CANCELED a moment later. One that is over stays as it is."""
    return await render(conn, access, await service.cancel(conn, access, job_id))


@router.post(
    f"{_JOB}/duplicate",
    responses={409: {"description": "The job was deleted, or its secrets were dropped."}},
)
async def duplicate_job(
    database: Db, access: AccessToJob, availability: JobAvailability, job_id: str
) -> JobResponse:
    """Run a job once more, with the same secrets."""
    await service.prepare_copy(database, availability, access, job_id)
    async with database.transaction() as conn:
        return await render(conn, access, await service.duplicate(conn, access, job_id))


@router.put(f"{_JOB}/labels", responses={409: {"description": "The job was deleted."}})
async def update_job_labels(
    conn: Conn, access: AccessToJob, job_id: str, body: UpdateLabels
) -> JobResponse:
    """Replace all labels of a job."""
    job = await service.set_labels(conn, access, job_id, body.labels)
    return await render(conn, access, job)


@router.put(f"{_JOB}/expose", responses={409: {"description": "The job is over."}})
async def update_job_expose(
    conn: Conn, access: AccessToJob, job_id: str, body: Expose
) -> JobResponse:
    """Replace the ports of a job that are reached from outside; without any all are closed."""
    job = await service.set_expose(conn, access, job_id, body)
    return await render(conn, access, job)


@router.delete(_JOB, responses={409: {"description": "The job is not over, or was deleted."}})
async def delete_job(conn: Conn, access: AccessToJob, job_id: str) -> Done:
    """Delete a job that is over, with what it printed; its record stays, in the stage DELETED."""
    await service.delete(conn, access, job_id)
    return Done()


@router.get(f"{_JOB}/events", response_class=Response, responses=EVENT_STREAM_RESPONSES)
async def stream_job_events(
    request: Request, database: Db, access: AccessToJob, job_id: str
) -> Response:
    """Follow a job: each stage and message that it had, then those it gets, until it is over."""
    async with database.read() as conn:
        job = await service.get(conn, access, job_id)
    check = partial(recheck_access, request, database, access, job.id)
    return EventStream(request, partial(follow_events, database, job.id), check_access=check)


@metrics_router.get(
    f"{_JOB}/metrics",
    response_class=Response,
    responses=EVENT_STREAM_RESPONSES,
)
async def stream_job_metrics(
    request: Request,
    database: Db,
    access: AccessToJob,
    meter: JobUsageMeter,
    job_id: str,
) -> Response:
    """Follow what a job uses: an event `metric` each second while it runs, until it is over."""
    async with database.read() as conn:
        job = await service.get(conn, access, job_id)
    check = partial(recheck_access, request, database, access, job.id)
    measures = partial(follow_metrics, database, job.id, meter=meter)
    return EventStream(request, measures, check_access=check)


ROUTERS: tuple[Router, ...] = (router, logs_router, metrics_router, schedules_router)
