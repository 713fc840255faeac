"""Switches and announcements: kept in the database, remembered by every process of the hub.

They are one value of the metadata. A process reads it when it starts, when it hears of a change, and
every few seconds in case it did not hear: no page or request reads it.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import msgspec

from hublet.core import metadata
from hublet.core.clock import from_micros, now, to_micros
from hublet.core.database import Connection, Database, DatabaseUnavailable, Reader
from hublet.core.errors import InvalidRequest, NotFound
from hublet.core.hub import Announcement, AnnouncementTone, SiteState, Switch
from hublet.core.ids import new_object_id
from hublet.core.logs import get_logger

log = get_logger("switches")

CHANNEL = "site"
MOST_CHARACTERS = 280
_MOST_ANNOUNCEMENTS = 5
_LONGEST = timedelta(days=366)
_NAME = "site"
# The wake-up by another process may be lost.
_BACK_STOP_SECONDS = 5.0


class _StoredAnnouncement(msgspec.Struct):
    id: str
    text: str
    tone: str
    for_signed_in: bool
    until: int


class _StoredSite(msgspec.Struct):
    switches: dict[str, bool] = {}
    announcements: list[_StoredAnnouncement] = []


async def set_switch(conn: Connection, switch: Switch, *, on: bool) -> None:
    """Turn a switch in all processes, now and after restarts."""
    state = await _lock_and_read(conn)
    await _write(conn, replace(state, switches={**state.switches, switch: on}))


async def reset_switch(conn: Connection, switch: Switch) -> None:
    """Let the settings say again whether it is on."""
    state = await _lock_and_read(conn)
    others = {name: on for name, on in state.switches.items() if name != switch}
    await _write(conn, replace(state, switches=others))


async def announce(
    conn: Connection, text: str, *, tone: str, for_signed_in: bool, hours: float
) -> Announcement:
    """Show a text above every page for some hours."""
    words = " ".join(text.split())
    if not 0 < len(words) <= MOST_CHARACTERS:
        raise InvalidRequest(f"text must have 1 to {MOST_CHARACTERS} characters.")
    if tone not in list(AnnouncementTone):
        raise InvalidRequest(f"tone must be one of {', '.join(AnnouncementTone)}.")
    # Also refuses what is no number: it compares as False.
    if not 0 < hours <= _LONGEST / timedelta(hours=1):
        raise InvalidRequest("hours must be more than 0, and at most a year.")
    state = await _lock_and_read(conn)
    current = tuple(each for each in state.announcements if each.until > now())
    if len(current) >= _MOST_ANNOUNCEMENTS:
        raise InvalidRequest(
            f"There are {_MOST_ANNOUNCEMENTS} announcements, which is the most: withdraw one first."
        )
    announcement = Announcement(
        id=new_object_id(),
        text=words,
        tone=AnnouncementTone(tone),
        for_signed_in=for_signed_in,
        until=now() + timedelta(hours=hours),
    )
    await _write(conn, replace(state, announcements=(*current, announcement)))
    return announcement


async def withdraw(conn: Connection, announcement_id: str) -> Announcement:
    """Take an announcement away before its end; return it."""
    state = await _lock_and_read(conn)
    by_id = {each.id: each for each in state.announcements}
    withdrawn = by_id.pop(announcement_id, None)
    if withdrawn is None:
        raise NotFound(f"There is no announcement {announcement_id}.")
    await _write(conn, replace(state, announcements=tuple(by_id.values())))
    return withdrawn


async def _lock_and_read(conn: Connection) -> SiteState:
    await conn.lock(_NAME)
    return await _read(conn)


async def _read(conn: Reader) -> SiteState:
    text = await metadata.find(conn, _NAME)
    if text is None:
        return SiteState()
    stored = msgspec.json.decode(text, type=_StoredSite)
    return SiteState(
        switches=stored.switches,
        announcements=tuple(
            Announcement(
                id=each.id,
                text=each.text,
                tone=AnnouncementTone(each.tone),
                for_signed_in=each.for_signed_in,
                until=from_micros(each.until),
            )
            for each in stored.announcements
        ),
    )


async def _write(conn: Connection, state: SiteState) -> None:
    announcements = [
        _StoredAnnouncement(
            id=each.id,
            text=each.text,
            tone=each.tone,
            for_signed_in=each.for_signed_in,
            until=to_micros(each.until),
        )
        for each in state.announcements
    ]
    stored = _StoredSite(switches=dict(state.switches), announcements=announcements)
    await metadata.set_value(conn, _NAME, msgspec.json.encode(stored).decode())
    conn.wake(CHANNEL)


async def refresh(database: Database) -> None:
    """Let this process know at once what was committed."""
    async with database.read() as conn:
        database.hub.site.state = await _read(conn)


class SiteWatcher:
    """Keeps what a process knows of the site in step with the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await refresh(self._database)
        self._watching = asyncio.create_task(self._watch(), name="site")

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching

    async def _watch(self) -> None:
        with self._database.subscribe(CHANNEL) as changes:
            while True:
                await changes.wait(timeout=_BACK_STOP_SECONDS)
                try:
                    await refresh(self._database)
                except DatabaseUnavailable as error:
                    log.warning("switches not read", reason=error.reason)
