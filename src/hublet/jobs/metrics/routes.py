"""HTTP for what a job uses."""

from functools import partial

from fastapi import Request
from starlette.responses import Response

from hublet.core.http import Db, Router
from hublet.core.http.event_streams import EVENTS, EventStream
from hublet.jobs import service
from hublet.jobs.auth import BeforeJob, check_again
from hublet.jobs.metrics.stream import follow

router = Router(tags=["jobs"])


@router.get("/api/jobs/{namespace}/{job_id}/metrics", response_class=Response, responses=EVENTS)
async def stream_job_metrics(
    request: Request, database: Db, standing: BeforeJob, job_id: str
) -> Response:
    """Follow what a job uses: an event `metric` each second while it runs, until it is over."""
    async with database.read() as conn:
        job = await service.get(conn, standing, job_id)
    check = partial(check_again, request, database, standing, job.id)
    meter = request.app.state.jobs.usage
    return EventStream(request, partial(follow, database, job.id, meter=meter), check_access=check)
