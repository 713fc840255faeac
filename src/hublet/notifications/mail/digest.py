"""Daily digest of papers: schedules it, mails it page by page, writes the mail."""

from datetime import UTC, datetime, time, timedelta

import msgspec

from hublet.community.papers import store as papers
from hublet.community.papers.records import DailyPapersQuery, PaperSort
from hublet.community.papers.service import span_of
from hublet.core import clock, metadata
from hublet.core.database import Connection, Reader
from hublet.core.queue import NewTask, add
from hublet.notifications.mail import mail_queue
from hublet.notifications.mail.letters import MailContent
from hublet.notifications.mail.records import QueuedMail
from hublet.notifications.preferences import service as preferences
from hublet.notifications.preferences.switches import PreferenceKey

BEGIN = "notifications.begin-digest"
GO_ON = "notifications.go-on-with-digest"
# Users processed in one transaction.
BATCH = 500
# The most voted ones; the daily papers have the rest.
MOST_PAPERS = 50
_SUMMARY_CHARACTERS = 400
# The last day on which a digest was begun.
_LAST_DAY = "papers_digest"


async def schedule(conn: Connection) -> None:
    """Queue the next digest, once a day however often this is called.

    A hub that was off at the hour sends it late, but on the same day.
    """
    moment = clock.now()
    due = _due_on(conn, moment)
    if await _is_begun(conn, moment):
        due += timedelta(days=1)
    # With the hour, because that is a setting: the task of the old hour queues that of the new.
    key = f"{BEGIN}.{due.isoformat()}"
    delay = max(due - moment, timedelta())
    await add(conn, NewTask(kind=BEGIN, body="{}", key=key, delay=delay))


async def begin(conn: Connection) -> None:
    """Begin today's digest, of the papers of the day before, unless that was done already."""
    await conn.lock("digest of papers")
    moment = clock.now()
    # A task that was due while the hub was off may run before the hour of another day.
    if moment >= _due_on(conn, moment) and not await _is_begun(conn, moment):
        await metadata.set_value(conn, _LAST_DAY, moment.date().isoformat())
        day = (moment.date() - timedelta(days=1)).isoformat()
        if await has_papers(conn, day):
            await _add_page(conn, day=day, after="")
    await schedule(conn)


async def mail_page(conn: Connection, *, day: str, after: str) -> None:
    """Mail the digest to those of the next users who want it."""
    wanting, last = await preferences.list_wanting(
        conn, PreferenceKey.daily_papers_digest, after=after, limit=BATCH
    )
    await mail_queue.queue_digest_mail(conn, day=day, user_ids=wanting)
    if last is not None:
        await _add_page(conn, day=day, after=last)


def _due_on(conn: Connection, moment: datetime) -> datetime:
    return datetime.combine(moment.date(), time(conn.hub.settings.mail.digest_hour), UTC)


async def _is_begun(conn: Connection, moment: datetime) -> bool:
    last = await metadata.find(conn, _LAST_DAY)
    return last is not None and last >= moment.date().isoformat()


async def _add_page(conn: Connection, *, day: str, after: str) -> None:
    body = msgspec.json.encode({"day": day, "after": after}).decode()
    await add(conn, NewTask(kind=GO_ON, body=body))


async def has_papers(conn: Reader, day: str) -> bool:
    return bool(await papers.list_daily(conn, _daily_query(day, limit=1)))


async def write_digest_mail(conn: Reader, mail: QueuedMail) -> MailContent | None:
    """Return the mail's content, the papers of a day; None when there are none any more."""
    found = await papers.list_daily(conn, _daily_query(mail.about, limit=MOST_PAPERS))
    if not found:
        return None
    base_url = conn.hub.settings.base_url
    rendered = [
        {
            "title": paper.thread.title,
            "authors": ", ".join(paper.authors),
            "summary": _shorten(paper.summary),
            "url": f"{base_url}/papers/{paper.id}",
        }
        for paper in found
    ]
    return MailContent(
        subject=f"Papers of {mail.about}",
        template="digest",
        values={"day": mail.about, "papers": rendered},
        why="You get this because you asked for the daily digest of papers.",
    )


def _daily_query(day: str, *, limit: int) -> DailyPapersQuery:
    return DailyPapersQuery(
        span=span_of(day=day, week=None, month=None), sort=PaperSort.trending, limit=limit
    )


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SUMMARY_CHARACTERS else line[:_SUMMARY_CHARACTERS].rstrip() + " …"
