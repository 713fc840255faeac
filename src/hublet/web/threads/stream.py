"""Stream of a thread: says that something has changed, and the page asks for what it shows."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager

from hublet.community.threads.store import versions_of
from hublet.core import outbox
from hublet.core.database import Database, Reader
from hublet.core.errors import TooManyRequests
from hublet.core.http.event_streams import CheckAccess
from hublet.core.version_watcher import VersionWatcher, wait_for_change

# Of one person, or of one address: some windows on some machines.
MOST_STREAMS = 20
# People do not notice more, and everything that commits wakes the watcher.
_PAUSE_SECONDS = 1.0
_KEEP_ALIVE_SECONDS = 15.0


class TooManyThreadStreams(TooManyRequests):
    def __init__(self) -> None:
        super().__init__(f"There are {MOST_STREAMS} open streams of you already; close one.")


class ThreadWatcher(VersionWatcher):
    """Wakes the open pages of each thread that has changed."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, outbox.CHANNEL, pause_seconds=_PAUSE_SECONDS)
        self._open: Counter[str] = Counter()

    async def read_versions(self, conn: Reader, keys: Sequence[str]) -> Mapping[str, int]:
        return await versions_of(conn, keys)

    def check_room(self, viewer: str) -> None:
        if self._open[viewer] >= MOST_STREAMS:
            raise TooManyThreadStreams

    @contextmanager
    def follow(self, thread_id: str, *, viewer: str) -> Iterator[asyncio.Event]:
        self._open[viewer] += 1
        try:
            with self.subscribe(thread_id) as changed:
                yield changed
        finally:
            self._open -= Counter({viewer: 1})


async def listen(
    watcher: ThreadWatcher,
    thread_id: str,
    *,
    viewer: str,
    since: int,
    check_access: CheckAccess,
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    """Yield an event for each version after the one that the page shows; its id is the version."""
    with watcher.follow(thread_id, viewer=viewer) as changed:
        yield ": listening\nretry: 2000\n\n"
        while not stopping.is_set():
            # Cleared before the read: a commit during it sets it again.
            changed.clear()
            async with watcher.database.read() as conn:
                version = (await versions_of(conn, [thread_id])).get(thread_id)
            if version is None:
                return
            if version != since:
                await check_access()
                since = version
                yield f"event: changed\nid: {version}\ndata: \n\n"
            while not (changed.is_set() or stopping.is_set()):
                await wait_for_change(changed, stopping, seconds=_KEEP_ALIVE_SECONDS)
                if not changed.is_set():
                    yield ": still listening\n\n"
