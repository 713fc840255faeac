"""HTTP for the log of a job, also as a stream: the lines there are, then those that come, until the job is
over.
"""

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from hublet.core.clock import monotonic
from hublet.core.dataclasses import dataclass
from hublet.core.http import Db, Router
from hublet.core.http.event_streams import EVENT_STREAM_RESPONSES, CheckAccess, EventStream
from hublet.jobs import service
from hublet.jobs.auth import AccessToJob, recheck_access
from hublet.jobs.logs.reader import find_tail, read_piece
from hublet.jobs.logs.source import JobLog
from hublet.jobs.logs.watcher import Follower, LogWatcher, find_log

# The public client takes 5 silent seconds for the end of the lines so far, 120 for a failure.
KEEP_ALIVE_SECONDS = 30.0
# A hub that stops waits at most so long for a stream.
_STOP_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    job_id: str
    log: JobLog
    # Only so many of the lines so far; None: all of them.
    tail: int | None
    is_over: bool
    # Whether to send the lines that come later too.
    to_the_end: bool = True


async def follow_log(
    watcher: LogWatcher,
    request: LogRequest,
    *,
    check_access: CheckAccess,
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    """Yield the lines that there are, then those that come, until the job is over.

    Between two lines only an offset in the log is held, however slow the reader is. The access
    is checked again now and then.
    """
    with watcher.follow(request.job_id, request.log) as follower:
        follower.is_over = request.is_over
        async for piece in _follow(request, follower, check_access, stopping):
            yield piece


async def _follow(
    request: LogRequest,
    follower: Follower,
    check_access: CheckAccess,
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    offset = 0
    if request.tail is not None:
        offset = await asyncio.to_thread(find_tail, follower.log, request.tail)
    spoke_at = checked_at = monotonic()
    while not stopping.is_set():
        # Both before the read: what is written during it changes them again.
        follower.changed.clear()
        is_over = follower.is_over
        piece = await asyncio.to_thread(read_piece, follower.log, offset, is_over=is_over)
        offset = piece.end
        if piece.events:
            yield piece.events
            spoke_at = monotonic()
        elif is_over or not request.to_the_end:
            return
        else:
            await _pause(follower)
        if monotonic() >= checked_at + KEEP_ALIVE_SECONDS:
            await check_access()
            checked_at = monotonic()
        if monotonic() >= spoke_at + KEEP_ALIVE_SECONDS:
            yield ": keep-alive\n\n"
            spoke_at = monotonic()


async def _pause(follower: Follower) -> None:
    try:
        async with asyncio.timeout(_STOP_LOOK_SECONDS):
            await follower.changed.wait()
    except TimeoutError:
        return


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
