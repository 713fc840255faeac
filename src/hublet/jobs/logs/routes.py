"""HTTP for what a job prints."""

from functools import partial
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from hublet.core.http import Db, Router
from hublet.core.http.event_streams import EVENTS, EventStream
from hublet.jobs import service
from hublet.jobs.auth import BeforeJob, check_again
from hublet.jobs.logs.lookout import Lookout
from hublet.jobs.logs.reading import log_of
from hublet.jobs.logs.stream import AskedLog, follow

router = Router(tags=["jobs"])

Tail = Annotated[
    int | None,
    Query(ge=0, le=2**31 - 1, description="Of the lines that there are already only the last."),
]

Follow = Annotated[
    bool, Query(alias="follow", description="`false`: only the lines that there are already.")
]


@router.get("/api/jobs/{namespace}/{job_id}/logs", response_class=Response, responses=EVENTS)
async def stream_job_logs(
    request: Request,
    database: Db,
    standing: BeforeJob,
    job_id: str,
    tail: Tail = None,
    to_the_end: Follow = True,  # noqa: FBT002 - part of the address
) -> Response:
    """Follow what a job prints: every line from the first one on, until the job is over.

    Each event is `{"data": "<line>", "timestamp": "<time>"}`, the same in every answer.
    """
    async with database.read() as conn:
        job = await service.get(conn, standing, job_id)
    path, over = log_of(database.hub.settings.database.data_dir, job.id), job.stage.is_terminal
    asked = AskedLog(job_id=job.id, path=path, tail=tail, is_over=over, to_the_end=to_the_end)
    lookout: Lookout = request.app.state.job_logs
    check = partial(check_again, request, database, standing, job.id)
    return EventStream(request, partial(follow, lookout, asked), check_access=check)
