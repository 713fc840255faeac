"""The daily digest of papers: when it is due, and who gets it."""

from datetime import UTC, datetime, time, timedelta

import msgspec

from hublet.core import clock, facts
from hublet.core.database import Connection
from hublet.core.queue import NewTask, add
from hublet.notifications.mail import queueing
from hublet.notifications.mail.letters import digests
from hublet.notifications.preferences import service as preferences
from hublet.notifications.preferences.keys import Key

BEGIN = "notifications.begin-digest"
GO_ON = "notifications.go-on-with-digest"

# Users looked at in one transaction.
BATCH = 500
# The last day on which a digest was begun.
_LAST = "papers_digest"


async def plan(conn: Connection) -> None:
    """Have the next digest sent, once on any day however often this is asked for.

    A hub that was off at the hour sends it late, but on the same day.
    """
    moment = clock.now()
    due = _due_on(conn, moment)
    if await _is_begun(conn, moment):
        due += timedelta(days=1)
    # With the hour, because that is a setting: the task of the old hour plans the one of the new.
    key = f"{BEGIN}.{due.isoformat()}"
    delay = max(due - moment, timedelta())
    await add(conn, NewTask(kind=BEGIN, body="{}", key=key, delay=delay))


async def begin(conn: Connection) -> None:
    """Begin today's digest, of the papers of the day before, unless that was done already."""
    await conn.lock("digest of papers")
    moment = clock.now()
    # What was due while the hub was off may come to be run before the hour of another day.
    if moment >= _due_on(conn, moment) and not await _is_begun(conn, moment):
        await facts.set_value(conn, _LAST, moment.date().isoformat())
        day = (moment.date() - timedelta(days=1)).isoformat()
        if await digests.has_papers(conn, day):
            await _add_page(conn, day=day, after="")
    await plan(conn)


def _due_on(conn: Connection, moment: datetime) -> datetime:
    return datetime.combine(moment.date(), time(conn.hub.settings.mail.digest_hour), UTC)


async def go_on(conn: Connection, *, day: str, after: str) -> None:
    """Mail the digest to those of the next users who want it."""
    wanting, last = await preferences.page_of_those_who_want(
        conn, Key.daily_papers_digest, after=after, limit=BATCH
    )
    await queueing.mail_of_digest(conn, day=day, user_ids=wanting)
    if last is not None:
        await _add_page(conn, day=day, after=last)


async def _is_begun(conn: Connection, moment: datetime) -> bool:
    last = await facts.find(conn, _LAST)
    return last is not None and last >= moment.date().isoformat()


async def _add_page(conn: Connection, *, day: str, after: str) -> None:
    body = msgspec.json.encode({"day": day, "after": after}).decode()
    await add(conn, NewTask(kind=GO_ON, body=body))
