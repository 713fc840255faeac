"""Stream of an inbox: server-sent events, and one watcher that wakes all open streams.

However many streams there are, a process reads the versions of their inboxes a few times a second
at most, with one statement, and only while there are streams.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Any

import msgspec

from hublet.core.clock import monotonic, to_micros
from hublet.core.database import Database, DatabaseUnavailable, Subscription
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError
from hublet.core.logs import get_logger
from hublet.notifications.errors import TooManyStreams
from hublet.notifications.inbox import store
from hublet.notifications.inbox.paging import read_page
from hublet.notifications.records import INBOXES_CHANNEL, Selection

log = get_logger("notifications")
# Of one user: some windows on some machines.
MOST_STREAMS = 20
# Under load there are hundreds of commits each second; they are read together.
_LEAST_PAUSE_SECONDS = 0.25
# The wake-up by another process may be lost.
_BACK_STOP_SECONDS = 5.0
KEEP_ALIVE_SECONDS = 15.0
# The streams of a revoked token end after so long at the latest.
CHECK_SECONDS = 5.0
# A client that was away for long gets the items of so many pages, and not the older ones.
MOST_PAGES = 20


class InboxWatcher:
    """Wakes the open streams of each user whose inbox has changed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # By user, one wake-up for each open stream.
        self._streams: dict[str, set[asyncio.Event]] = {}
        # The version of each inbox when its streams were last woken.
        self._versions: dict[str, int] = {}
        self._changes: Subscription | None = None
        self._watching: asyncio.Task[None] | None = None

    def check_room(self, user_id: str) -> None:
        if len(self._streams.get(user_id, ())) >= MOST_STREAMS:
            raise TooManyStreams(MOST_STREAMS)

    @contextmanager
    def subscribe(self, user_id: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set after every change which is committed from now on."""
        changed = asyncio.Event()
        self._streams.setdefault(user_id, set()).add(changed)
        self._keep_watching()
        try:
            yield changed
        finally:
            self._unsubscribe(user_id, changed)

    def _unsubscribe(self, user_id: str, changed: asyncio.Event) -> None:
        self._streams[user_id].discard(changed)
        if not self._streams[user_id]:
            del self._streams[user_id]
            self._versions.pop(user_id, None)
        if not self._streams and self._changes is not None:
            # The task sees that there is no stream left, and ends.
            self._changes.wake()

    def _keep_watching(self) -> None:
        if self._watching is not None and not self._watching.done():
            return
        # Subscribed now, not when the task begins, so that nothing is missed in between.
        opened = ExitStack()
        self._changes = opened.enter_context(self._database.subscribe(INBOXES_CHANNEL))
        self._watching = asyncio.create_task(self._watch(opened, self._changes), name="inboxes")

    async def _watch(self, opened: ExitStack, changes: Subscription) -> None:
        with opened:
            read_at = 0.0
            while self._streams:
                await changes.wait(timeout=_BACK_STOP_SECONDS)
                await asyncio.sleep(read_at + _LEAST_PAUSE_SECONDS - monotonic())
                read_at = monotonic()
                try:
                    await self._wake_changed()
                except DatabaseUnavailable as error:
                    log.warning("inboxes not looked at", reason=error.reason)

    async def _wake_changed(self) -> None:
        listening = list(self._streams)
        if not listening:
            return
        async with self._database.read() as conn:
            versions = await store.versions_of(conn, listening)
        for user_id, version in versions.items():
            if user_id in self._streams and self._versions.get(user_id) != version:
                self._versions[user_id] = version
                for changed in self._streams[user_id]:
                    changed.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxUpdate:
    """An inbox at one moment: its counts, and the items since an earlier moment."""

    count: dict[str, int]
    # Oldest first, each with its time in microseconds.
    items: list[tuple[int, dict[str, Any]]]
    # The time of the newest item, or the earlier moment if none came since.
    moment: int


async def read_update(database: Database, user_id: str, *, since: int | None) -> InboxUpdate:
    """Return the items after a moment; without a moment only the counts."""
    page = await read_page(database, user_id, Selection(), page=0)
    found = _with_times(page)
    newest = found[0][0] if found else 0
    after = newest if since is None else since
    pages = 1
    # All of them are new, so there may be more; items that come meanwhile must not move the pages.
    while found and found[-1][0] > after and pages < MOST_PAGES:
        selection = Selection(until=newest)
        older = _with_times(await read_page(database, user_id, selection, page=pages))
        if not older:
            break
        found += older
        pages += 1
    count = {"unread": page["count"]["unread"], "all": page["count"]["all"]}
    items = [each for each in reversed(found) if each[0] > after]
    return InboxUpdate(count=count, items=items, moment=max(newest, after))


def _with_times(page: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    return [
        (to_micros(datetime.fromisoformat(item["updatedAt"])), item)
        for item in page["notifications"]
    ]


async def listen(
    database: Database,
    watcher: InboxWatcher,
    user_id: str,
    *,
    since: int | None,
    check_access: Callable[[], Awaitable[None]],
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    """Yield server-sent events until the access is lost or the hub stops.

    The id of an event is the time of the newest item that was sent: what is committed later has a
    later one, so a client that reconnects with it misses nothing and gets nothing twice.
    """
    with watcher.subscribe(user_id) as changed:
        try:
            yield ": listening\nretry: 1000\n\n"
            async for piece in _listen(database, user_id, changed, since, check_access, stopping):
                yield piece
        except HubError:
            # The access is lost, or the database is unavailable. It is too late for an error
            # response; the client reconnects and gets it then.
            return


async def _listen(
    database: Database,
    user_id: str,
    changed: asyncio.Event,
    since: int | None,
    check_access: Callable[[], Awaitable[None]],
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    count: dict[str, int] | None = None
    sent_at = monotonic()
    while not stopping.is_set():
        # Cleared before the read: a commit during it sets it again.
        changed.clear()
        update = await read_update(database, user_id, since=since)
        for moment, item in update.items:
            yield _server_sent_event("notification", moment, item)
        if update.count != count:
            yield _server_sent_event("count", update.moment, update.count)
        if update.items or update.count != count:
            sent_at = monotonic()
        count, since = update.count, update.moment
        while not stopping.is_set():
            await _wait_for_change(changed, stopping)
            await check_access()
            if monotonic() >= sent_at + KEEP_ALIVE_SECONDS:
                yield ": still listening\n\n"
                sent_at = monotonic()
            if changed.is_set():
                break


def _server_sent_event(name: str, moment: int, data: dict[str, Any]) -> str:
    return f"event: {name}\nid: {moment}\ndata: {msgspec.json.encode(data).decode()}\n\n"


async def _wait_for_change(changed: asyncio.Event, stopping: asyncio.Event) -> None:
    """Wait for a change, but no longer than until the next check of access."""
    waits = [asyncio.ensure_future(changed.wait()), asyncio.ensure_future(stopping.wait())]
    try:
        await asyncio.wait(waits, timeout=CHECK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
