"""Version watcher: one reader for all open streams of a process, which wakes those that have changed.

However many streams there are, a process reads the versions of what they show a few times a second at
most, with one statement, and only while there are streams.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from hublet.core.clock import monotonic
from hublet.core.database import Database, DatabaseUnavailable, Reader, Subscription
from hublet.core.logs import get_logger

log = get_logger("streams")
# The wake-up by another process may be lost.
_BACK_STOP_SECONDS = 5.0


class VersionWatcher(ABC):
    """Wakes the open streams of each key whose version has changed."""

    def __init__(self, database: Database, channel: str, *, pause_seconds: float) -> None:
        """Commits on the channel are read together, with a pause between two readings."""
        self.database = database
        self._channel = channel
        self._pause_seconds = pause_seconds
        # By key, one wake-up for each open stream.
        self._streams: dict[str, set[asyncio.Event]] = {}
        # The version of each key when its streams were last woken.
        self._versions: dict[str, int] = {}
        self._changes: Subscription | None = None
        self._watching: asyncio.Task[None] | None = None

    @abstractmethod
    async def read_versions(self, conn: Reader, keys: Sequence[str]) -> Mapping[str, int]:
        """Return the versions of these keys, with one statement."""

    def count_streams(self, key: str) -> int:
        return len(self._streams.get(key, ()))

    @contextmanager
    def subscribe(self, key: str, changed: asyncio.Event | None = None) -> Iterator[asyncio.Event]:
        """Yield an event that is set after every change which is committed from now on.

        A stream of several keys may bring one event for all of them.
        """
        changed = changed or asyncio.Event()
        self._streams.setdefault(key, set()).add(changed)
        self._keep_watching()
        try:
            yield changed
        finally:
            self._unsubscribe(key, changed)

    def _unsubscribe(self, key: str, changed: asyncio.Event) -> None:
        self._streams[key].discard(changed)
        if not self._streams[key]:
            del self._streams[key]
            self._versions.pop(key, None)
        if not self._streams and self._changes is not None:
            # The task sees that there is no stream left, and ends.
            self._changes.wake()

    def _keep_watching(self) -> None:
        if self._watching is not None and not self._watching.done():
            return
        # Subscribed now, not when the task begins, so that nothing is missed in between.
        opened = ExitStack()
        self._changes = opened.enter_context(self.database.subscribe(self._channel))
        self._watching = asyncio.create_task(
            self._watch(opened, self._changes), name=f"watch {self._channel}"
        )

    async def _watch(self, opened: ExitStack, changes: Subscription) -> None:
        with opened:
            read_at = 0.0
            while self._streams:
                await changes.wait(timeout=_BACK_STOP_SECONDS)
                await asyncio.sleep(read_at + self._pause_seconds - monotonic())
                read_at = monotonic()
                try:
                    await self._wake_changed()
                except DatabaseUnavailable as error:
                    log.warning("streams not looked at", reason=error.reason)

    async def _wake_changed(self) -> None:
        keys = list(self._streams)
        if not keys:
            return
        async with self.database.read() as conn:
            versions = await self.read_versions(conn, keys)
        for key, version in versions.items():
            if key in self._streams and self._versions.get(key) != version:
                self._versions[key] = version
                for changed in self._streams[key]:
                    changed.set()


async def wait_for_change(
    changed: asyncio.Event, stopping: asyncio.Event, *, seconds: float
) -> None:
    """Wait for a change or the end of the hub, but not for longer than this."""
    waits = [asyncio.ensure_future(changed.wait()), asyncio.ensure_future(stopping.wait())]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
