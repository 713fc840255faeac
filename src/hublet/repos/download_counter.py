"""Counter of downloads, by whichever way they are made, and their history by day."""

import asyncio
from collections import Counter

from hublet.core.clock import micros, monotonic
from hublet.core.database import Connection, Database, DatabaseUnavailable, Reader
from hublet.core.logs import get_logger
from hublet.repos import downloads_store
from hublet.repos.records import Repo

log = get_logger("downloads")

_FLUSH_SECONDS = 5.0
# Within this time, all files of a repository that one client fetches are one download.
_WINDOW_SECONDS = 300.0
_MOST_REMEMBERED = 100_000
DAYS_KEPT = 400
_DAY_MICROS = 86_400 * 1_000_000


def _today() -> int:
    """Return the day in UTC as the days since 1970-01-01."""
    return micros() // _DAY_MICROS


async def history_of(conn: Reader, repo: Repo, *, days: int) -> list[int]:
    """Return the downloads of the last days, the day that is today last."""
    first = _today() - days + 1
    found = await downloads_store.list_daily_downloads(conn, repo.id, since=first)
    return [found.get(day, 0) for day in range(first, first + days)]


class DownloadCounter:
    """Download counter: gathers counts in memory and writes them every few seconds.

    All that one user or address fetches from a repository within five minutes counts once. A
    process that is killed loses the counts of the last seconds, which is acceptable.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._counts: Counter[str] = Counter()
        self._seen: set[tuple[str, str]] = set()
        self._window_ends = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        # The day on which old days were last removed.
        self._pruned_on = 0

    def count(self, repo_id: str, *, who: str) -> None:
        if monotonic() >= self._window_ends or len(self._seen) >= _MOST_REMEMBERED:
            self._seen.clear()
            self._window_ends = monotonic() + _WINDOW_SECONDS
        if (repo_id, who) in self._seen:
            return
        self._seen.add((repo_id, who))
        self._counts[repo_id] += 1
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_FLUSH_SECONDS, self._begin_flush)

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._flushing is not None:
            await asyncio.wait([self._flushing])
        await self.flush()

    def _begin_flush(self) -> None:
        self._timer = None
        self._flushing = asyncio.create_task(self.flush(), name="download-counts")

    async def flush(self) -> None:
        if not self._counts:
            return
        counts, self._counts = self._counts, Counter()
        try:
            async with self._database.transaction() as conn:
                await self._write(conn, sorted(counts.items()))
        except DatabaseUnavailable as error:
            log.warning("downloads not written", reason=error.reason)

    async def _write(self, conn: Connection, counts: list[tuple[str, int]]) -> None:
        today = _today()
        # In this order: it locks the repositories, so that none is deleted in between.
        await downloads_store.add_downloads(conn, counts)
        await downloads_store.add_daily_downloads(conn, counts, day=today)
        if self._pruned_on != today:
            await downloads_store.remove_daily_downloads(conn, before=today - DAYS_KEPT + 1)
            self._pruned_on = today
