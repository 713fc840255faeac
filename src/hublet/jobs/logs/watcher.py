"""Watcher of logs: one poll notifies all followers that a log grew or its job is over.

However many followers there are, a process checks the files a few times a second, and queries the
database only when a job, or a log in the shared store, has changed. Without followers it does neither.
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from hublet.core.clock import monotonic
from hublet.core.database import Database, DatabaseUnavailable, Reader, Subscription
from hublet.core.logs import get_logger
from hublet.jobs import store
from hublet.jobs.logs import store as log_store
from hublet.jobs.logs.reader import log_path, sizes_of
from hublet.jobs.logs.source import JobLog, StoredLog
from hublet.jobs.records import JOB_LOGS, JOBS
from hublet.storage.object_store import has_shared_store, open_store

log = get_logger("jobs")

# Nothing announces that a file grew.
_POLL_SECONDS = 0.1
# Under load jobs change by the hundred each second; they are checked together.
_LEAST_PAUSE_SECONDS = 0.05
# A notification of another process may be lost.
_BACK_STOP_SECONDS = 2.0


async def find_log(conn: Reader, job_id: str) -> JobLog:
    """Return where the log of a job is: in the shared store, or in a file of this machine."""
    settings = conn.hub.settings
    parts = await log_store.list_parts(conn, job_id)
    path = log_path(settings.database.data_dir, job_id)
    if parts or (has_shared_store(settings) and not await asyncio.to_thread(path.exists)):
        return StoredLog(store=open_store(settings), folder=path.parent, parts=tuple(parts))
    return path


@dataclass(slots=True, eq=False)
class Follower:
    """A reader of a log; `changed` is set when there is more to read."""

    followed: "_FollowedLog"
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    # Set before the log is read to its end: a job is over only after its last line is written.
    is_over: bool = False

    @property
    def log(self) -> JobLog:
        """The log as it is known now."""
        return self.followed.log


@dataclass(slots=True)
class _FollowedLog:
    log: JobLog
    size: int = -1
    # Of a log in the shared store: what changes whenever that does.
    version: tuple[object, ...] = ()
    followers: set[Follower] = field(default_factory=set)

    def notify(self, *, is_over: bool = False) -> None:
        for follower in self.followers:
            follower.is_over = follower.is_over or is_over
            follower.changed.set()


class LogWatcher:
    """The followed logs of one process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._followed: dict[str, _FollowedLog] = {}
        self._polling: asyncio.Task[None] | None = None
        self._wakes = 0
        self._check_again_at = 0.0

    @contextmanager
    def follow(self, job_id: str, log: JobLog | None = None) -> Iterator[Follower]:
        """Return a follower that is notified of every change, until the end of the context.

        Without a log it is the file of this machine.
        """
        path = log_path(self._database.hub.settings.database.data_dir, job_id)
        followed = self._followed.setdefault(job_id, _FollowedLog(log or path))
        follower = Follower(followed)
        followed.followers.add(follower)
        # The job may be over already: the next poll finds out.
        self._check_again_at = 0.0
        self._ensure_polling()
        try:
            yield follower
        finally:
            followed.followers.discard(follower)
            if not followed.followers:
                self._followed.pop(job_id, None)

    def _ensure_polling(self) -> None:
        if self._polling is None or self._polling.done():
            stack = ExitStack()
            changes = stack.enter_context(self._database.subscribe(JOBS))
            growth = stack.enter_context(self._database.subscribe(JOB_LOGS))
            self._polling = asyncio.create_task(self._poll(stack, changes, growth), name="job logs")

    async def _poll(self, stack: ExitStack, changes: Subscription, growth: Subscription) -> None:
        with stack:
            while self._followed:
                try:
                    await self._check_rows(changes, growth)
                    await self._check_files()
                except (DatabaseUnavailable, OSError) as error:
                    log.warning("logs of jobs not looked at", reason=str(error))
                await changes.wait(timeout=_POLL_SECONDS)
                await asyncio.sleep(_LEAST_PAUSE_SECONDS)

    async def _check_rows(self, changes: Subscription, growth: Subscription) -> None:
        wakes = changes.wakes + growth.wakes
        if wakes == self._wakes and monotonic() < self._check_again_at:
            return
        self._wakes = wakes
        # Set before the query: a follower that comes during it asks for another.
        self._check_again_at = monotonic() + _BACK_STOP_SECONDS
        async with self._database.read() as conn:
            # In this order: the log of a job that is over has its last line.
            finished = await store.list_finished(conn, self._followed)
            await self._read_stored(conn)
        for job_id in finished & self._followed.keys():
            self._followed[job_id].notify(is_over=True)

    async def _read_stored(self, conn: Reader) -> None:
        stored = {
            job_id: (each, each.log)
            for job_id, each in self._followed.items()
            if isinstance(each.log, StoredLog)
        }
        versions = await log_store.list_versions(conn, stored) if stored else {}
        for job_id, (each, log) in stored.items():
            if each.version != (version := versions.get(job_id, ())):
                parts = await log_store.list_parts(conn, job_id)
                each.log, each.version = replace(log, parts=tuple(parts)), version
                each.notify()

    async def _check_files(self) -> None:
        followed = list(self._followed.values())
        sizes = await asyncio.to_thread(sizes_of, [each.log for each in followed])
        for each, size in zip(followed, sizes, strict=True):
            if size != each.size:
                each.size = size
                each.notify()
