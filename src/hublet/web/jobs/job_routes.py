"""HTTP for the page of a job: what it shows, its log as a file, and the stream that keeps it up to date."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import Depends, Query, Response
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import StreamingResponse

from hublet.core.clock import to_micros
from hublet.core.database import Reader
from hublet.core.errors import AuthenticationNeeded, NotFound
from hublet.core.http.event_streams import EventStream, LastEventId
from hublet.core.pages import PageRouter
from hublet.jobs import service
from hublet.jobs.access import JobAccess, get_access
from hublet.jobs.errors import JobNotFound, NamespaceNotFound
from hublet.jobs.logs.source import JobLog
from hublet.jobs.logs.watcher import find_log
from hublet.jobs.metrics import find_history, history_path
from hublet.jobs.records import JobRecord
from hublet.login.auth import find_session
from hublet.web.auth import PageVisit, Visit
from hublet.web.jobs.job_log import (
    LINES_BEFORE,
    MOST_LINES,
    SHOWN_LINES,
    LogQuery,
    plain_log,
    show_log,
)
from hublet.web.jobs.job_stream import FeedRequest, JobFeeds, follow_job
from hublet.web.jobs.job_views import draw_plots, get_viewed_job, memory_peak, view_of
from hublet.web.live import LiveStreams
from hublet.web.pages import frame_for, render


class _JobIdConvertor(Convertor[str]):
    """The id of a job: other words in its place are other pages."""

    regex = "[0-9a-f]{24}"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("job_id", _JobIdConvertor())

router = PageRouter(prefix="/jobs/{owner}/{job_id:job_id}")

_MOST = 2**40
_Number = Annotated[int, Query(ge=0, le=_MOST)]


async def _log_query(
    first: Annotated[int, Query(alias="from", ge=0, le=_MOST)] = 0,
    lines: Annotated[int, Query(ge=1, le=MOST_LINES)] = SHOWN_LINES,
    q: Annotated[str, Query(max_length=200)] = "",
) -> LogQuery:
    return LogQuery(first=first, count=lines, text=q.strip())


RequestedLog = Annotated[LogQuery, Depends(_log_query)]


@router.get("")
async def get_job_page(
    visit: Visit,
    owner: str,
    job_id: str,
    query: RequestedLog,
    at: datetime | None = None,
) -> Response:
    """Show a job with the end of its log, a range of it, or the lines with a text.

    With a time it leads to the line of that moment.
    """
    feeds = _feeds_of(visit)
    with _as_absent():
        async with visit.database.read() as conn:
            access = await _get_access(conn, visit, owner)
            viewed = await get_viewed_job(conn, access, job_id)
            frame = await frame_for(visit, conn)
            # After the stage: the log of a job that is over has its last line.
            log = await find_log(conn, viewed.job.id)
    job, data_dir = viewed.job, visit.settings.database.data_dir
    path = f"/jobs/{access.owner.name}/{job.id}"
    if at is not None:
        line = await asyncio.to_thread(feeds.lines.find_moment, log, to_micros(at))
        target = f"{path}?from={max(1, line - LINES_BEFORE)}#L{line}"
        return Response(status_code=303, headers={"Location": target})
    async with feeds.searches if query.text else nullcontext():
        shown, tail = await asyncio.to_thread(show_log, feeds.lines, log, job, query, path=path)
    history = await asyncio.to_thread(find_history, history_path(data_dir, job.id), log)
    token = visit.form_token(f"jobs of {access.owner.id}")
    stream = f"{path}/stream?after={shown.last}&version={job.version}" if shown.is_live else None
    return await render(
        visit,
        "jobs/job.html",
        frame=frame,
        live=stream,
        view=view_of(viewed, visit.settings, tail=tail, form_token=token),
        log=shown,
        plots=draw_plots(history),
        peak=memory_peak(history),
    )


@router.get("/log")
async def download_log(visit: Visit, owner: str, job_id: str) -> Response:
    """Send everything that the job printed, as it printed it."""
    job, log = await _get_job_and_log(visit, owner, job_id)
    headers = {
        "Content-Disposition": f'attachment; filename="{job.id}.log"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, no-cache",
    }
    return StreamingResponse(plain_log(log), media_type="text/plain", headers=headers)


@router.get("/stream")
async def stream_job(
    visit: Visit,
    owner: str,
    job_id: str,
    after: _Number = 0,
    version: _Number = 0,
    last_event_id: LastEventId = None,
) -> Response:
    """Send what comes: lines after the one that the page has, stages, plots, the unread count."""
    job, log = await _get_job_and_log(visit, owner, job_id)
    feeds, viewer = _feeds_of(visit), visit.person.user_id
    streams: LiveStreams = visit.request.app.state.live_streams
    streams.check_room(viewer)
    line = after if last_event_id is None else int(last_event_id)
    request = FeedRequest(job_id=job.id, log=log, viewer=viewer, line=line, version=version)

    async def check() -> None:
        if await find_session(visit.request) is None:
            raise AuthenticationNeeded("The session has ended.")
        await _get_job_and_log(visit, owner, job_id)

    events = partial(follow_job, feeds, request, streams)
    return EventStream(visit.request, events, check_access=check)


def _feeds_of(visit: PageVisit) -> JobFeeds:
    feeds: JobFeeds = visit.request.app.state.job_feeds
    return feeds


async def _get_job_and_log(visit: PageVisit, owner: str, job_id: str) -> tuple[JobRecord, JobLog]:
    with _as_absent():
        async with visit.database.read() as conn:
            job = await service.get(conn, await _get_access(conn, visit, owner), job_id)
            return job, await find_log(conn, job.id)


async def _get_access(conn: Reader, visit: PageVisit, owner: str) -> JobAccess:
    if visit.caller is None:
        raise NamespaceNotFound(owner)
    return await get_access(conn, visit.caller, owner)


@contextmanager
def _as_absent() -> Iterator[None]:
    """Say of what the viewer may not see the same as of what is not there."""
    try:
        yield
    except (JobNotFound, NamespaceNotFound):
        raise NotFound("There is no such job, or you may not see it.") from None
