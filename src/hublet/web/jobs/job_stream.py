"""Stream of a job's page: its lines, stage and plots, and the viewer's unread count.

However many pages of a job are open, one feed reads its log, renders each line once and draws the
plots once; the streams send what it has.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from markupsafe import Markup

from hublet.core.clock import monotonic
from hublet.core.database import Database, DatabaseUnavailable, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.http.event_streams import CheckAccess
from hublet.core.logs import get_logger
from hublet.core.version_watcher import VersionWatcher
from hublet.jobs import statistics_store
from hublet.jobs.logs.lines import LogLines, LogRange, read_new
from hublet.jobs.logs.source import JobLog
from hublet.jobs.logs.watcher import LogWatcher
from hublet.jobs.metrics import PERIOD_SECONDS, find_history, history_path
from hublet.jobs.records import JOBS
from hublet.notifications.inbox import service as inbox
from hublet.web.jobs.job_log import SHOWN_LINES, bounds_of, render_lines
from hublet.web.jobs.job_views import draw_plots, memory_peak
from hublet.web.live import INBOXES, LiveStreams
from hublet.web.pages import render_block

log = get_logger("jobs")

# Streams that are further behind read the log themselves until they have caught up.
_KEPT_FRAGMENTS = 16
_KEEP_ALIVE_SECONDS = 15.0
# A hub that stops waits at most so long for a stream, and so late the unread count is seen.
_LOOK_SECONDS = 1.0
_STAGE_PAUSE_SECONDS = 0.25


class JobWatcher(VersionWatcher):
    """Wakes the feeds of each job whose stage or message has changed."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, JOBS, pause_seconds=_STAGE_PAUSE_SECONDS)

    async def read_versions(self, conn: Reader, keys: Sequence[str]) -> Mapping[str, int]:
        return await statistics_store.versions_of(conn, keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFragment:
    """Lines that came together, as the event that adds them to a page."""

    first: int
    last: int
    event: str


class JobFeed:
    """What the open pages of one job are sent; it exists while there are any."""

    def __init__(self, feeds: "JobFeeds", job_id: str, log: JobLog) -> None:
        self._feeds = feeds
        self.job_id = job_id
        data_dir = feeds.database.hub.settings.database.data_dir
        self.log = log
        self._usage = history_path(data_dir, job_id)
        self.listeners: set[asyncio.Event] = set()
        # The number of the last line that was read, and those that were read last.
        self.last_line = -1
        self._fragments: deque[LineFragment] = deque(maxlen=_KEPT_FRAGMENTS)
        self.version = 0
        # The event with the plots, and how often they were drawn.
        self.plots = ""
        self.plot_count = 0
        self.task = asyncio.create_task(self._run(), name=f"feed {job_id}")

    async def _run(self) -> None:
        try:
            await self._follow()
        except Exception:
            log.exception("the page of a job is not kept up to date", job=self.job_id)

    async def _follow(self) -> None:
        with (
            self._feeds.watcher.follow(self.job_id, self.log) as follower,
            self._feeds.jobs.subscribe(self.job_id) as changed,
        ):
            # Whatever is written from now on is read from here; what was before, by each stream.
            end = await asyncio.to_thread(self._feeds.lines.read_tail, self.log, count=1)
            offset, self.last_line = end.end, end.total
            drawn_at = monotonic()
            changed.set()
            follower.changed.set()
            while True:
                if changed.is_set():
                    changed.clear()
                    await self._read_version()
                if follower.changed.is_set():
                    # Before the read: what is written during it sets it again.
                    follower.changed.clear()
                    self.log = follower.log
                    offset = await self._read_lines(offset)
                if monotonic() >= drawn_at + PERIOD_SECONDS and not follower.is_over:
                    drawn_at = monotonic()
                    await self._draw_plots()
                await _wait(follower.changed, seconds=_STAGE_PAUSE_SECONDS)

    async def _read_lines(self, offset: int) -> int:
        """Read and render what was written since; return the offset after it."""
        piece, html = await asyncio.to_thread(self._render_new, offset)
        while piece.lines:
            event = f"event: lines\nid: {piece.lines[-1].number}\ndata: {html}\n\n"
            first, last = bounds_of(piece.lines)
            self._fragments.append(LineFragment(first=first, last=last, event=event))
            self.last_line = last
            self._notify()
            piece, html = await asyncio.to_thread(self._render_new, piece.end)
        return piece.end

    def _render_new(self, offset: int) -> tuple[LogRange, Markup]:
        piece = read_new(self.log, offset, first=self.last_line + 1)
        return piece, render_lines(piece.lines)

    async def _read_version(self) -> None:
        try:
            async with self._feeds.database.read() as conn:
                versions = await statistics_store.versions_of(conn, [self.job_id])
        except DatabaseUnavailable:
            return
        self.version = versions.get(self.job_id, 0)
        self._notify()

    async def _draw_plots(self) -> None:
        event = _event("plots", await asyncio.to_thread(_plots_html, self._usage, self.log))
        if event != self.plots:
            self.plots, self.plot_count = event, self.plot_count + 1
            self._notify()

    def _notify(self) -> None:
        for listener in self.listeners:
            listener.set()

    def fragment_after(self, line: int) -> LineFragment | None:
        """Return the lines that follow this one, if they are still here."""
        return next((each for each in self._fragments if each.first == line + 1), None)


class JobFeeds:
    """The feeds of one process."""

    def __init__(self, database: Database, watcher: LogWatcher) -> None:
        self.database = database
        self.watcher = watcher
        self.lines = LogLines()
        self.jobs = JobWatcher(database)
        # A search reads a whole log: no more of them at a time.
        self.searches = asyncio.Semaphore(2)
        self._feeds: dict[str, JobFeed] = {}

    @property
    def open_jobs(self) -> list[str]:
        return list(self._feeds)

    @contextmanager
    def follow(self, job_id: str, log: JobLog) -> Iterator[tuple[JobFeed, asyncio.Event]]:
        """Yield the feed of a job, and an event that is set when it has more."""
        feed = self._feeds.get(job_id)
        if feed is None or feed.task.done():
            feed = self._feeds[job_id] = JobFeed(self, job_id, log)
        listener = asyncio.Event()
        feed.listeners.add(listener)
        try:
            yield feed, listener
        finally:
            feed.listeners.discard(listener)
            if not feed.listeners:
                feed.task.cancel()
                self._feeds.pop(job_id, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRequest:
    """What a page has already: the last line, and the version of the job."""

    job_id: str
    log: JobLog
    viewer: str
    line: int
    version: int


async def follow_job(
    feeds: JobFeeds,
    request: FeedRequest,
    streams: LiveStreams,
    *,
    check_access: CheckAccess,
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    """Yield lines, changes of the stage, plots and the unread count, each when there is a new one.

    The id of an event is the number of the last line before it, so a page that comes back, also to a
    hub that was started again, misses no line and gets none twice.
    """
    line, version, plots, spoke_at = request.line, request.version, 0, monotonic()
    with (
        feeds.follow(request.job_id, request.log) as (feed, changed),
        streams.open(request.viewer, {INBOXES: request.viewer}) as unread,
    ):
        unread.set()
        yield f": listening\nretry: 1000\nid: {line}\n\n"
        # A feed that failed is logged; the page comes back and gets a new one.
        while not (stopping.is_set() or feed.task.done()):
            changed.clear()
            pieces: list[str] = []
            while (fragment := await _lines_after(feeds, feed, line)) is not None:
                line = fragment.last
                yield fragment.event
            if feed.version and feed.version != version:
                await check_access()
                version = feed.version
                pieces.append(_event("changed", str(version)))
            if feed.plot_count != plots:
                plots = feed.plot_count
                pieces.append(feed.plots)
            if unread.is_set():
                unread.clear()
                pieces.append(_event("unread", str(await _count_unread(feeds, request.viewer))))
            if monotonic() >= spoke_at + _KEEP_ALIVE_SECONDS:
                await check_access()
                pieces.append(": still listening\n\n")
                spoke_at = monotonic()
            if pieces:
                yield "".join(pieces)
            await _wait(changed, seconds=_LOOK_SECONDS)


async def _count_unread(feeds: JobFeeds, user_id: str) -> int:
    async with feeds.database.read() as conn:
        return await inbox.count_unread(conn, user_id)


def _plots_html(usage: Path, log: JobLog) -> str:
    history = find_history(usage, log)
    return render_block(
        "jobs/job.html", "plots", plots=draw_plots(history), peak=memory_peak(history)
    )


async def _lines_after(feeds: JobFeeds, feed: JobFeed, line: int) -> LineFragment | None:
    """Return the next lines: from the feed, or from the log for who is behind; None: there are none."""
    if line >= feed.last_line or feed.last_line < 0:
        return None
    if (fragment := feed.fragment_after(line)) is not None:
        return fragment
    count = min(SHOWN_LINES, feed.last_line - line)
    missed = await asyncio.to_thread(feeds.lines.read, feed.log, line + 1, count=count)
    if not missed.lines:
        return None
    html = await asyncio.to_thread(render_lines, missed.lines)
    first, last = bounds_of(missed.lines)
    return LineFragment(first=first, last=last, event=f"event: lines\nid: {last}\ndata: {html}\n\n")


def _event(name: str, data: str) -> str:
    # Line ends between elements mean nothing, and in a stream they would end the event.
    return f"event: {name}\ndata: {' '.join(data.split())}\n\n"


async def _wait(event: asyncio.Event, *, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
