"""Stream of an inbox: server-sent events, and one watcher that wakes all open streams."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from hublet.core.clock import monotonic, to_micros
from hublet.core.database import Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError
from hublet.core.version_watcher import VersionWatcher, wait_for_change
from hublet.notifications.errors import TooManyStreams
from hublet.notifications.inbox import store
from hublet.notifications.inbox.paging import read_page
from hublet.notifications.records import INBOXES_CHANNEL, Selection

# Of one user: some windows on some machines.
MOST_STREAMS = 20
# Under load there are hundreds of commits each second; they are read together.
_LEAST_PAUSE_SECONDS = 0.25
KEEP_ALIVE_SECONDS = 15.0
# The streams of a revoked token end after so long at the latest.
CHECK_SECONDS = 5.0
# A client that was away for long gets the items of so many pages, and not the older ones.
MOST_PAGES = 20


class InboxWatcher(VersionWatcher):
    """Wakes the open streams of each user whose inbox has changed."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, INBOXES_CHANNEL, pause_seconds=_LEAST_PAUSE_SECONDS)

    async def read_versions(self, conn: Reader, keys: Sequence[str]) -> Mapping[str, int]:
        return await store.versions_of(conn, keys)

    def check_room(self, user_id: str) -> None:
        if self.count_streams(user_id) >= MOST_STREAMS:
            raise TooManyStreams(MOST_STREAMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxUpdate:
    """An inbox at one moment: its counts, and the items since an earlier moment."""

    count: dict[str, int]
    # Oldest first, each with its time in microseconds.
    items: list[tuple[int, dict[str, Any]]]
    # The time of the newest item, or the earlier moment if none came since.
    moment: int


async def read_update(
    database: Database, user_id: str, everything: Selection, *, since: int | None
) -> InboxUpdate:
    """Return the items after a moment, of all that there are; without a moment only the counts."""
    page = await read_page(database, user_id, everything, page=0)
    found = _with_times(page)
    newest = found[0][0] if found else 0
    after = newest if since is None else since
    pages = 1
    # All of them are new, so there may be more; items that come meanwhile must not move the pages.
    while found and found[-1][0] > after and pages < MOST_PAGES:
        selection = replace(everything, until=newest)
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
    read: Callable[..., Awaitable[InboxUpdate]],
    watcher: InboxWatcher,
    user_id: str,
    *,
    since: int | None,
    check_access: Callable[[], Awaitable[None]],
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    """Yield server-sent events until the access is lost or the hub stops; `read` is `read_update`.

    The id of an event is the time of the newest item that was sent: what is committed later has a
    later one, so a client that reconnects with it misses nothing and gets nothing twice.
    """
    with watcher.subscribe(user_id) as changed:
        try:
            yield ": listening\nretry: 1000\n\n"
            async for piece in _listen(read, changed, since, check_access, stopping):
                yield piece
        except HubError:
            # The access is lost, or the database is unavailable. It is too late for an error
            # response; the client reconnects and gets it then.
            return


async def _listen(
    read: Callable[..., Awaitable[InboxUpdate]],
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
        update = await read(since=since)
        for moment, item in update.items:
            yield _server_sent_event("notification", moment, item)
        if update.count != count:
            yield _server_sent_event("count", update.moment, update.count)
        if update.items or update.count != count:
            sent_at = monotonic()
        count, since = update.count, update.moment
        while not stopping.is_set():
            # No longer than until the next check of access.
            await wait_for_change(changed, stopping, seconds=CHECK_SECONDS)
            await check_access()
            if monotonic() >= sent_at + KEEP_ALIVE_SECONDS:
                yield ": still listening\n\n"
                sent_at = monotonic()
            if changed.is_set():
                break


def _server_sent_event(name: str, moment: int, data: dict[str, Any]) -> str:
    return f"event: {name}\nid: {moment}\ndata: {msgspec.json.encode(data).decode()}\n\n"
