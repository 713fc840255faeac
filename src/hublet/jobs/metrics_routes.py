"""HTTP for the metrics of a job."""

from functools import partial

from fastapi import Request
from starlette.responses import Response

from hublet.core.http import Db, Router
from hublet.core.http.event_streams import EVENT_STREAM_RESPONSES, EventStream
from hublet.jobs import service
from hublet.jobs.auth import AccessToJob, JobAvailability, recheck_access
from hublet.jobs.metrics import follow_metrics

router = Router(tags=["jobs"])


@router.get(
    "/api/jobs/{namespace}/{job_id}/metrics",
    response_class=Response,
    responses=EVENT_STREAM_RESPONSES,
)
async def stream_job_metrics(
    request: Request,
    database: Db,
    access: AccessToJob,
    availability: JobAvailability,
    job_id: str,
) -> Response:
    """Follow what a job uses: an event `metric` each second while it runs, until it is over."""
    async with database.read() as conn:
        job = await service.get(conn, access, job_id)
    check = partial(recheck_access, request, database, access, job.id)
    measures = partial(follow_metrics, database, job.id, meter=availability.usage)
    return EventStream(request, measures, check_access=check)
