"""HTTP for the log of a job."""

from functools import partial
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from hublet.core.http import Db, Router
from hublet.core.http.event_streams import EVENT_STREAM_RESPONSES, EventStream
from hublet.jobs import service
from hublet.jobs.auth import AccessToJob, recheck_access
from hublet.jobs.logs.stream import LogRequest, follow_log
from hublet.jobs.logs.watcher import LogWatcher, find_log

router = Router(tags=["jobs"])

Tail = Annotated[
    int | None,
    Query(ge=0, le=2**31 - 1, description="Of the lines that there are already only the last."),
]

Follow = Annotated[
    bool, Query(alias="follow", description="`false`: only the lines that there are already.")
]


@router.get(
    "/api/jobs/{namespace}/{job_id}/logs", response_class=Response, responses=EVENT_STREAM_RESPONSES
)
async def stream_job_logs(
    request: Request,
    database: Db,
    access: AccessToJob,
    job_id: str,
    tail: Tail = None,
    to_the_end: Follow = True,  # noqa: FBT002 - part of the address
) -> Response:
    """Follow what a job prints: every line from the first one on, until the job is over.

    Each event is `{"data": "<line>", "timestamp": "<time>"}`, the same in every answer.
    """
    async with database.read() as conn:
        job = await service.get(conn, access, job_id)
        # After the stage: the log of a job that is over has its last line.
        log = await find_log(conn, job.id)
    over = job.stage.is_terminal
    log_request = LogRequest(job_id=job.id, log=log, tail=tail, is_over=over, to_the_end=to_the_end)
    watcher: LogWatcher = request.app.state.job_logs
    check = partial(recheck_access, request, database, access, job.id)
    return EventStream(request, partial(follow_log, watcher, log_request), check_access=check)
