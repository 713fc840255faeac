"""Counter of downloads, by whichever way they are made."""

import asyncio
from collections import Counter

from starlette.requests import Request

from hublet.core.clock import monotonic
from hublet.core.database import Database, DatabaseUnavailable
from hublet.core.http.exchange import exchange_of
from hublet.core.logs import get_logger
from hublet.repos.store import add_downloads

log = get_logger("downloads")

_FLUSH_SECONDS = 5.0
# Within this time, all files of a repository that one client fetches are one download.
_WINDOW_SECONDS = 300.0
_MOST_REMEMBERED = 100_000


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
                await add_downloads(conn, sorted(counts.items()))
        except DatabaseUnavailable as error:
            log.warning("downloads not written", reason=error.reason)


def count_download(request: Request, repo_id: str) -> None:
    """Count a download of whoever sent this request."""
    exchange = exchange_of(request)
    counter: DownloadCounter = request.app.state.downloads
    counter.count(repo_id, who=exchange.user or exchange.address)
