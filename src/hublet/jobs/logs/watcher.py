"""Watcher of log files: one poll notifies all followers that a log grew or its job is over.

However many followers there are, a process looks a few times a second at the files, and at the
database only when a job has changed. It looks only while there are followers.
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
_LOOK_SECONDS = 0.1
# Under load jobs change by the hundred each second; they are taken together.
_LEAST_PAUSE_SECONDS = 0.05
# A notice of another process may be lost.
_BACK_STOP_SECONDS = 2.0


@dataclass(slots=True, eq=False)
class Follower:
    """Set `news` means: look at the log again."""

    news: asyncio.Event = field(default_factory=asyncio.Event)
    # Known before the log is read to its end: what a job printed is there before it is over.
    is_over: bool = False


@dataclass(slots=True)
class _FollowedLog:
    path: Path
    size: int = -1
    followers: set[Follower] = field(default_factory=set)

    def tell(self, *, is_over: bool = False) -> None:
        for follower in self.followers:
            follower.is_over = follower.is_over or is_over
            follower.news.set()


class LogWatcher:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._followed: dict[str, _FollowedLog] = {}
        self._looking: asyncio.Task[None] | None = None
        self._heard = 0
        self._look_again_at = 0.0

    @contextmanager
    def follow(self, job_id: str) -> Iterator[Follower]:
        """Tell of every change from now on, until the end of the context."""
        follower = Follower()
        path = log_path(self._database.hub.settings.database.data_dir, job_id)
        followed = self._followed.setdefault(job_id, _FollowedLog(path))
        followed.followers.add(follower)
        # Whether the job is over already the next look tells.
        self._look_again_at = 0.0
        self._keep_looking()
        try:
            yield follower
        finally:
            followed.followers.discard(follower)
            if not followed.followers:
                self._followed.pop(job_id, None)

    def _keep_looking(self) -> None:
        if self._looking is None or self._looking.done():
            opened = ExitStack()
            changes = opened.enter_context(self._database.subscribe(JOBS))
            self._looking = asyncio.create_task(self._look_on(opened, changes), name="job logs")

    async def _look_on(self, opened: ExitStack, changes: Subscription) -> None:
        with opened:
            while self._followed:
                try:
                    await self._look_at_stages(changes)
                    await self._look_at_files()
                except (DatabaseUnavailable, OSError) as error:
                    log.warning("logs of jobs not looked at", reason=str(error))
                await changes.wait(timeout=_LOOK_SECONDS)
                await asyncio.sleep(_LEAST_PAUSE_SECONDS)

    async def _look_at_stages(self, changes: Subscription) -> None:
        if changes.rings == self._heard and monotonic() < self._look_again_at:
            return
        self._heard = changes.rings
        # Set before the look: who comes during it asks for another.
        self._look_again_at = monotonic() + _BACK_STOP_SECONDS
        async with self._database.read() as conn:
            over = await store.list_finished(conn, self._followed)
        for job_id in over & self._followed.keys():
            self._followed[job_id].tell(is_over=True)

    async def _look_at_files(self) -> None:
        followed = list(self._followed.values())
        sizes = await asyncio.to_thread(sizes_of, [each.path for each in followed])
        for each, size in zip(followed, sizes, strict=True):
            if size != each.size:
                each.size = size
                each.tell()
