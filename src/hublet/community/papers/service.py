"""Rules of papers: their ids, who submits, votes and deletes, the paper as Markdown, and the periods of daily
papers: the span of a day, a week or a month, in UTC.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, date, datetime, time, timedelta

from hublet.accounts.access import role_of
from hublet.accounts.names import name_key
from hublet.accounts.records import Role
from hublet.accounts.users import service as accounts
from hublet.accounts.users import store as accounts_store
from hublet.community.comments import (
    PUBLIC_CONTEXT,
    is_hub_administrator,
    lock_thread,
    lock_thread_as_writer,
)
from hublet.community.errors import (
    AuthorClaimed,
    CannotSubmitFor,
    InvalidDay,
    InvalidPaper,
    NotYourThread,
    PaperExists,
    ThreadNotFound,
)
from hublet.community.papers import store
from hublet.community.papers.records import ARXIV_ID, NewPaper, PaperRecord
from hublet.community.threads import service as threads
from hublet.community.threads import store as threads_store
from hublet.community.threads.records import Participation, Thread, ThreadKind
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.tokens.records import Caller

Span = tuple[datetime, datetime]

_YEAR = "(19|2[0-9])[0-9]{2}"
_DAY = re.compile(f"{_YEAR}-[0-9]{{2}}-[0-9]{{2}}")
_WEEK = re.compile(f"{_YEAR}-W[0-9]{{2}}")
_MONTH = re.compile(f"{_YEAR}-[0-9]{{2}}")


def span_of(*, day: str | None, week: str | None, month: str | None) -> Span | None:
    """Return the start and the end of the period; None when no period is given."""
    kinds = ((_day, day), (_week, week), (_month, month))
    given = [(parse, text) for parse, text in kinds if text is not None]
    if not given:
        return None
    if len(given) > 1:
        raise InvalidDay("Give only one of date, week and month.")
    ((parse, text),) = given
    first, after = parse(text)
    return datetime.combine(first, time(), UTC), datetime.combine(after, time(), UTC)


def _day(text: str) -> tuple[date, date]:
    first = _date(text, _DAY, end="")
    if first is None:
        raise InvalidDay("date must be a day such as 2026-11-15.")
    return first, first + timedelta(days=1)


def _week(text: str) -> tuple[date, date]:
    first = _date(text, _WEEK, end="-1")
    if first is None:
        raise InvalidDay("week must be a week such as 2026-W46.")
    return first, first + timedelta(days=7)


def _month(text: str) -> tuple[date, date]:
    first = _date(text, _MONTH, end="-01")
    if first is None:
        raise InvalidDay("month must be a month such as 2026-11.")
    return first, (first + timedelta(days=31)).replace(day=1)


def _date(text: str, pattern: re.Pattern[str], *, end: str) -> date | None:
    with suppress(ValueError):
        if pattern.fullmatch(text):
            return date.fromisoformat(text + end)
    return None


# Words that stand at this place in addresses of the API, or may stand there one day.
_RESERVED_IDS = frozenset({"claim", "daily", "index", "list", "new", "search", "trending"})

_OWN_ID = re.compile(r"(?=.{3,64}$)[a-z][a-z0-9]*(-[a-z0-9]+)*")

_EARLIEST_PUBLICATION = datetime(1900, 1, 1, tzinfo=UTC)
# Clocks differ, and a journal may print tomorrow's date.
_MAX_AHEAD = timedelta(days=1)


def check_id(paper_id: str) -> None:
    """Refuse an id that is no arXiv id and none of this hub's own form."""
    if ARXIV_ID.fullmatch(paper_id) is None and _OWN_ID.fullmatch(paper_id) is None:
        raise InvalidPaper(
            "A paper's id is an arXiv id such as 2401.12345, without its version, or 3 to 64 "
            "lower-case letters, digits and single hyphens that start with a letter."
        )
    if paper_id in _RESERVED_IDS:
        raise InvalidPaper(f"The id {paper_id} is reserved.")


async def submit(conn: Connection, caller: Caller, new: NewPaper) -> PaperRecord:
    """Add a paper; its submitter takes part in the thread without being its author."""
    check_id(new.id)
    _check_published(new.published_at)
    submitter_id = await _submitter_id(conn, caller, new.submitted_by)
    moment = now()
    thread = Thread(
        id=new_object_id(),
        kind=ThreadKind.paper,
        title=new.title,
        paper_id=new.id,
        body=new.summary,
        details={"authors": list(new.authors)},
        created_at=moment,
        updated_at=moment,
    )
    if not await threads_store.add(conn, thread):
        raise PaperExists(new.id)
    paper = PaperRecord(
        thread=thread,
        submitter_id=submitter_id,
        published_at=new.published_at or moment,
        submitted_at=moment,
    )
    await store.add(conn, paper)
    await threads_store.add_participations(conn, thread.id, {submitter_id: Participation.opened})
    await threads.open_thread(conn, thread, PUBLIC_CONTEXT, actor_id=caller.user_id, message=None)
    return paper


def _check_published(moment: datetime | None) -> None:
    if moment is not None and not _EARLIEST_PUBLICATION <= moment <= now() + _MAX_AHEAD:
        raise InvalidPaper("publishedAt must lie between the year 1900 and now.")


async def _submitter_id(conn: Reader, caller: Caller, name: str | None) -> str:
    if name is None or name_key(name) == name_key(caller.user_name):
        return caller.user_id
    if not is_hub_administrator(caller):
        raise CannotSubmitFor(name)
    return (await accounts.get_visible_user(conn, name, to_administrator=False)).id


async def get(conn: Reader, paper_id: str) -> PaperRecord:
    paper = await store.find(conn, paper_id)
    if paper is None:
        raise ThreadNotFound(f"paper {paper_id}")
    return paper


async def find_by_thread(conn: Reader, thread_id: str) -> PaperRecord | None:
    """Return the paper whose thread has this id: the inbox names papers so."""
    thread = await threads_store.find(conn, thread_id)
    return await store.find(conn, thread.paper_id) if thread and thread.paper_id else None


async def delete(conn: Connection, caller: Caller, paper: PaperRecord) -> None:
    """Delete a paper with its comments and the votes for it; only hub administrators can."""
    if not is_hub_administrator(caller):
        raise NotYourThread("delete", "paper")
    thread = await lock_thread(conn, paper.thread)
    await threads.delete(conn, thread, PUBLIC_CONTEXT, actor_id=caller.user_id)


async def vote(conn: Connection, caller: Caller, paper: PaperRecord, *, voted: bool) -> PaperRecord:
    """Vote for a paper, or take the vote back."""
    await lock_thread_as_writer(conn, caller, paper.thread)
    await store.set_vote(conn, paper.thread.id, user_id=caller.user_id, voted=voted)
    return await get(conn, paper.id)


async def set_links(
    conn: Connection, caller: Caller, paper: PaperRecord, *, changed: Mapping[str, str | None]
) -> None:
    """Change where more of a paper is, as its author, its submitter or a hub administrator."""
    thread = await lock_thread(conn, paper.thread)
    paper = replace(paper, thread=thread)
    is_its_own = caller.user_id in {paper.submitter_id, *paper.claims.values()}
    if not is_its_own and not is_hub_administrator(caller):
        raise NotYourThread("change the links of", "paper")
    if (organization_id := changed.get("organization_id")) is not None:
        await _check_organization(conn, caller, organization_id)
    links = {**asdict(paper.links), **changed}
    await _set_details(conn, thread, links={key: value for key, value in links.items() if value})


async def _check_organization(conn: Reader, caller: Caller, organization_id: str) -> None:
    role = await role_of(conn, organization_id, user_id=caller.user_id)
    if role is None or not role.covers(Role.write):
        raise InvalidPaper("organizationId must be an organization in which you may write.")


async def claim(
    conn: Connection, caller: Caller, paper: PaperRecord, author_id: str, *, user_id: str | None
) -> None:
    """Say which account an author has: one's own, or any for hub administrators."""
    if user_id not in {None, caller.user_id} and not is_hub_administrator(caller):
        raise InvalidPaper(
            "targetUserId: only hub administrators name another account than theirs."
        )
    thread = await lock_thread(conn, paper.thread)
    paper = replace(paper, thread=thread)
    if author_id not in paper.author_ids:
        raise InvalidPaper(f"claimAuthorId must be the _id of an author of {paper.id}.")
    target = user_id or caller.user_id
    if user_id is not None and await accounts_store.find(conn, user_id) is None:
        raise InvalidPaper("targetUserId must be a user of this hub.")
    known = paper.claims.get(author_id, target)
    if known != target and not is_hub_administrator(caller):
        raise AuthorClaimed(paper.id)
    await _set_details(conn, thread, claims=paper.claims | {author_id: target})


async def _set_details(conn: Connection, thread: Thread, **changed: object) -> None:
    await threads_store.update(conn, replace(thread, details=(thread.details or {}) | changed))


def render_markdown(paper: PaperRecord) -> str:
    return (
        f"# {paper.thread.title}\n\n"
        f"- Paper: {paper.id}\n"
        f"- Authors: {', '.join(paper.authors)}\n"
        f"- Published: {paper.published_at.date().isoformat()}\n\n"
        f"## Abstract\n\n{paper.summary.strip()}\n"
    )
