"""Mails about the papers of a day."""

from hublet.community.papers import store as papers
from hublet.community.papers.days import span_of
from hublet.community.papers.records import Daily, Sort
from hublet.core.database import Reader
from hublet.notifications.mail.letters.records import Content
from hublet.notifications.mail.records import Mail

# The most voted ones; the daily papers have the rest.
MOST = 50
_SUMMARY_CHARACTERS = 400


async def has_papers(conn: Reader, day: str) -> bool:
    return bool(await papers.list_daily(conn, _of(day, limit=1)))


async def write(conn: Reader, mail: Mail) -> Content | None:
    """Return the papers that were submitted on a day; None when none are left."""
    found = await papers.list_daily(conn, _of(mail.about, limit=MOST))
    if not found:
        return None
    base_url = conn.hub.settings.base_url
    shown = [
        {
            "title": paper.thread.title,
            "authors": ", ".join(paper.authors),
            "summary": _short(paper.summary),
            "url": f"{base_url}/papers/{paper.id}",
        }
        for paper in found
    ]
    return Content(
        subject=f"Papers of {mail.about}",
        template="digest",
        values={"day": mail.about, "papers": shown},
        why="You get this because you asked for the daily digest of papers.",
    )


def _of(day: str, *, limit: int) -> Daily:
    return Daily(span=span_of(day=day, week=None, month=None), sort=Sort.trending, limit=limit)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SUMMARY_CHARACTERS else line[:_SUMMARY_CHARACTERS].rstrip() + " …"
