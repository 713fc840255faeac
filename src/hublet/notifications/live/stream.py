"""An inbox as it changes, for somebody who listens."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import datetime
from typing import Any

import msgspec

from hublet.core.clock import monotonic, to_micros
from hublet.core.database import Database
from hublet.core.errors import HubError
from hublet.core.light_dataclasses import dataclass
from hublet.notifications.inbox.listing.service import read_page
from hublet.notifications.inbox.records import Selection
from hublet.notifications.live.bells import Bells

KEEP_ALIVE_SECONDS = 15.0
# A token that was revoked ends its streams after so long at the latest.
CHECK_SECONDS = 5.0
# Who was away for long is told of the items on so many pages, and not of the older ones.
MOST_PAGES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """An inbox at one moment: how much is in it, and what came since an earlier moment."""

    count: dict[str, int]
    # Oldest first, each with its time in microseconds.
    items: list[tuple[int, dict[str, Any]]]
    # The time of the newest item, or the earlier moment if none came since.
    moment: int


async def look(database: Database, user_id: str, *, since: int | None) -> News:
    """Return what came after a moment; without one only how things stand."""
    page = await read_page(database, user_id, Selection(), page=0)
    found = _timed(page)
    newest = found[0][0] if found else 0
    after = newest if since is None else since
    pages = 1
    # All of them are new, so there may be more; what comes meanwhile must not move the pages.
    while found and found[-1][0] > after and pages < MOST_PAGES:
        selection = Selection(until=newest)
        older = _timed(await read_page(database, user_id, selection, page=pages))
        if not older:
            break
        found += older
        pages += 1
    count = {"unread": page["count"]["unread"], "all": page["count"]["all"]}
    items = [each for each in reversed(found) if each[0] > after]
    return News(count=count, items=items, moment=max(newest, after))


def _timed(page: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    return [
        (to_micros(datetime.fromisoformat(item["updatedAt"])), item)
        for item in page["notifications"]
    ]


async def listen(
    database: Database,
    bells: Bells,
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
        news = await look(database, user_id, since=since)
        for moment, item in news.items:
            yield _event("notification", moment, item)
        if news.count != count:
            yield _event("count", news.moment, news.count)
        if news.items or news.count != count:
            spoke_at = monotonic()
        count, since = news.count, news.moment
        changed = False
        while not changed and not stopping.is_set():
            changed = await _pause(bell, stopping)
            await check_access()
            if monotonic() >= spoke_at + KEEP_ALIVE_SECONDS:
                yield ": still listening\n\n"
                spoke_at = monotonic()


def _event(name: str, moment: int, data: dict[str, Any]) -> str:
    return f"event: {name}\nid: {moment}\ndata: {msgspec.json.encode(data).decode()}\n\n"


async def _pause(bell: asyncio.Event, stopping: asyncio.Event) -> bool:
    """Wait for a change, but not for so long that the access is not checked in time."""
    waits = [asyncio.ensure_future(bell.wait()), asyncio.ensure_future(stopping.wait())]
    try:
        await asyncio.wait(waits, timeout=CHECK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    return bell.is_set()
