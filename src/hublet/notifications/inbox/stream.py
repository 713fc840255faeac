"""Stream of an inbox: server-sent events, and one watcher that wakes all open streams."""

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
from hublet.notifications.inbox.records import Selection
from hublet.notifications.records import INBOXES_CHANNEL

# However many streams there are, a process looks a few times a second at most, with one statement.
# It looks only while there are streams.

log = get_logger("notifications")

# Of one user: some windows on some machines, and no more.
MOST_STREAMS = 20
# Under load commits come by the hundred each second; they are taken together.
_LEAST_PAUSE_SECONDS = 0.25
# A notice of another process may be lost.
_BACK_STOP_SECONDS = 5.0


class InboxWatcher:
    """One bell for each open stream, hung up under its user."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._bells: dict[str, set[asyncio.Event]] = {}
        # The version of each inbox when its bells were last rung.
        self._rung_at: dict[str, int] = {}
        self._changes: Subscription | None = None
        self._watching: asyncio.Task[None] | None = None

    def check_room(self, user_id: str) -> None:
        if len(self._bells.get(user_id, ())) >= MOST_STREAMS:
            raise TooManyStreams(MOST_STREAMS)

    @contextmanager
    def hang(self, user_id: str) -> Iterator[asyncio.Event]:
        """Give a bell that is set after every change which is committed from now on."""
        bell = asyncio.Event()
        self._bells.setdefault(user_id, set()).add(bell)
        self._keep_watching()
        try:
            yield bell
        finally:
            self._take_down(user_id, bell)

    def _take_down(self, user_id: str, bell: asyncio.Event) -> None:
        self._bells[user_id].discard(bell)
        if not self._bells[user_id]:
            del self._bells[user_id]
            self._rung_at.pop(user_id, None)
        if not self._bells and self._changes is not None:
            # It sees that there is nobody left, and ends.
            self._changes.ring()

    def _keep_watching(self) -> None:
        if self._watching is not None and not self._watching.done():
            return
        # From this moment on, not from when the task begins: nothing is missed in between.
        opened = ExitStack()
        self._changes = opened.enter_context(self._database.subscribe(INBOXES_CHANNEL))
        self._watching = asyncio.create_task(self._watch(opened, self._changes), name="inboxes")

    async def _watch(self, opened: ExitStack, changes: Subscription) -> None:
        with opened:
            looked_at = 0.0
            while self._bells:
                await changes.wait(timeout=_BACK_STOP_SECONDS)
                await asyncio.sleep(looked_at + _LEAST_PAUSE_SECONDS - monotonic())
                looked_at = monotonic()
                try:
                    await self._look()
                except DatabaseUnavailable as error:
                    log.warning("inboxes not looked at", reason=error.reason)

    async def _look(self) -> None:
        listening = list(self._bells)
        if not listening:
            return
        async with self._database.read() as conn:
            versions = await store.versions_of(conn, listening)
        for user_id, version in versions.items():
            if user_id in self._bells and self._rung_at.get(user_id) != version:
                self._rung_at[user_id] = version
                for bell in self._bells[user_id]:
                    bell.set()


KEEP_ALIVE_SECONDS = 15.0
# A token that was revoked ends its streams after so long at the latest.
CHECK_SECONDS = 5.0
# Who was away for long is told of the items on so many pages, and not of the older ones.
MOST_PAGES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxUpdate:
    """An inbox at one moment: how much is in it, and what came since an earlier moment."""

    count: dict[str, int]
    # Oldest first, each with its time in microseconds.
    items: list[tuple[int, dict[str, Any]]]
    # The time of the newest item, or the earlier moment if none came since.
    moment: int


async def read_update(database: Database, user_id: str, *, since: int | None) -> InboxUpdate:
    """Return what came after a moment; without one only how things stand."""
    page = await read_page(database, user_id, Selection(), page=0)
    found = _with_times(page)
    newest = found[0][0] if found else 0
    after = newest if since is None else since
    pages = 1
    # All of them are new, so there may be more; what comes meanwhile must not move the pages.
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
    bells: InboxWatcher,
    user_id: str,
    *,
    since: int | None,
    check_access: Callable[[], Awaitable[None]],
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    """Yield server-sent events until the access is gone or the hub stops.

    The id of an event is the time of the newest item that was told of: what is committed later
    has a later one, so who comes back with it misses nothing and hears nothing twice.
    """
    with bells.hang(user_id) as bell:
        try:
            yield ": listening\nretry: 1000\n\n"
            async for piece in _listen(database, user_id, bell, since, check_access, stopping):
                yield piece
        except HubError:
            # The access is gone, or the database is away. It is too late for an answer that
            # says so; the listener comes back and then hears why.
            return


async def _listen(
    database: Database,
    user_id: str,
    bell: asyncio.Event,
    since: int | None,
    check_access: Callable[[], Awaitable[None]],
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    count: dict[str, int] | None = None
    spoke_at = monotonic()
    while not stopping.is_set():
        # Cleared before the look: whatever is committed during it rings again.
        bell.clear()
        news = await read_update(database, user_id, since=since)
        for moment, item in news.items:
            yield _server_sent_event("notification", moment, item)
        if news.count != count:
            yield _server_sent_event("count", news.moment, news.count)
        if news.items or news.count != count:
            spoke_at = monotonic()
        count, since = news.count, news.moment
        changed = False
        while not changed and not stopping.is_set():
            changed = await _wait_for_change(bell, stopping)
            await check_access()
            if monotonic() >= spoke_at + KEEP_ALIVE_SECONDS:
                yield ": still listening\n\n"
                spoke_at = monotonic()


def _server_sent_event(name: str, moment: int, data: dict[str, Any]) -> str:
    return f"event: {name}\nid: {moment}\ndata: {msgspec.json.encode(data).decode()}\n\n"


async def _wait_for_change(bell: asyncio.Event, stopping: asyncio.Event) -> bool:
    """Wait for a change, but not for so long that the access is not checked in time."""
    waits = [asyncio.ensure_future(bell.wait()), asyncio.ensure_future(stopping.wait())]
    try:
        await asyncio.wait(waits, timeout=CHECK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    return bell.is_set()
