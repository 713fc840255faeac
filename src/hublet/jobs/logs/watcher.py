"""Watcher of log files: one poll notifies all followers that a log grew or its job is over.

However many followers there are, a process checks the files a few times a second, and queries the
database only when a job has changed. Without followers it does neither.
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hublet.core.clock import monotonic
from hublet.core.database import Database, DatabaseUnavailable, Subscription
from hublet.core.logs import get_logger
from hublet.jobs import store
from hublet.jobs.logs.reader import log_path, sizes_of
from hublet.jobs.records import JOBS

log = get_logger("jobs")

# Nothing announces that a file grew.
_POLL_SECONDS = 0.1
# Under load jobs change by the hundred each second; they are checked together.
_LEAST_PAUSE_SECONDS = 0.05
# A notification of another process may be lost.
_BACK_STOP_SECONDS = 2.0


@dataclass(slots=True, eq=False)
class Follower:
    """A reader of a log; `changed` is set when there is more to read."""

    changed: asyncio.Event = field(default_factory=asyncio.Event)
    # Set before the log is read to its end: a job is over only after its last line is written.
    is_over: bool = False


@dataclass(slots=True)
class _FollowedLog:
    path: Path
    size: int = -1
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
    def follow(self, job_id: str) -> Iterator[Follower]:
        """Return a follower that is notified of every change, until the end of the context."""
        follower = Follower()
        path = log_path(self._database.hub.settings.database.data_dir, job_id)
        followed = self._followed.setdefault(job_id, _FollowedLog(path))
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
            self._polling = asyncio.create_task(self._poll(stack, changes), name="job logs")

    async def _poll(self, stack: ExitStack, changes: Subscription) -> None:
        with stack:
            while self._followed:
                try:
                    await self._check_stages(changes)
                    await self._check_files()
                except (DatabaseUnavailable, OSError) as error:
                    log.warning("logs of jobs not looked at", reason=str(error))
                await changes.wait(timeout=_POLL_SECONDS)
                await asyncio.sleep(_LEAST_PAUSE_SECONDS)

    async def _check_stages(self, changes: Subscription) -> None:
        if changes.wakes == self._wakes and monotonic() < self._check_again_at:
            return
        self._wakes = changes.wakes
        # Set before the query: a follower that comes during it asks for another.
        self._check_again_at = monotonic() + _BACK_STOP_SECONDS
        async with self._database.read() as conn:
            finished = await store.list_finished(conn, self._followed)
        for job_id in finished & self._followed.keys():
            self._followed[job_id].notify(is_over=True)

    async def _check_files(self) -> None:
        followed = list(self._followed.values())
        sizes = await asyncio.to_thread(sizes_of, [each.path for each in followed])
        for each, size in zip(followed, sizes, strict=True):
            if size != each.size:
                each.size = size
                each.notify()
