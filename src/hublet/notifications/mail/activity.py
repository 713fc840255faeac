"""Mails about a thread: one line for each event, and a link to the first new one."""

from collections.abc import Sequence

from hublet.accounts.organizations.store import find_accounts
from hublet.community.threads import store as threads
from hublet.community.threads.records import Comment, Thread, ThreadChange, ThreadKind
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.notifications.mail.letters import MailContent, list_id, may_see
from hublet.notifications.mail.records import QueuedMail
from hublet.notifications.preferences.switches import PreferenceKey
from hublet.repos import store as repo_rows

# What one mail shows; the thread itself has the rest.
MOST_LINES = 20
_LONGEST_TEXT = 10_000
_STATUS_VERBS = {"open": "opened it again", "closed": "closed it", "merged": "merged it"}
_OPENING_VERBS = {
    ThreadKind.paper: "submitted this paper",
    ThreadKind.post: "published this post",
    ThreadKind.blog: "published this blog",
}
_WHY_INVOLVED = "You get this because you take part in it or were mentioned in it."
_WHY_WATCHED = "You get this because you watch {where}."
_WATCHED_KEYS = frozenset({PreferenceKey.discussions_watched})


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityLine:
    """One event of a thread, as a mail shows it."""

    event_id: str
    # The name of the account that did it.
    author: str
    # Completes "ada …".
    did: str
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _RawActivity:
    """The same, before the author's name is looked up."""

    event_id: str
    author_id: str | None
    did: str
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadLocation:
    """Where a thread is: the label that the subject begins with, and the address."""

    label: str
    url: str
    title: str
    headers: dict[str, str]


async def write_thread_mail(conn: Reader, mail: QueuedMail) -> MailContent | None:
    """Return the mail's content; None when the thread is deleted, hidden from the user or empty."""
    thread = await threads.find(conn, mail.about)
    if thread is None:
        return None
    place = await find_location(conn, thread, reader_id=mail.user_id)
    if place is None:
        return None
    activity = await list_activity(conn, thread, mail.events)
    if not activity:
        return None
    return MailContent(
        subject=f"[{place.label}] {place.title}",
        template="thread",
        values={"activity": activity, "url": _first_new_url(place, activity, thread)},
        why=_WHY_WATCHED.format(where=place.label) if mail.key in _WATCHED_KEYS else _WHY_INVOLVED,
        root=f"thread.{thread.id}",
        headers=place.headers,
    )


async def find_location(conn: Reader, thread: Thread, *, reader_id: str) -> ThreadLocation | None:
    """Return where a thread is; None for who may not see it."""
    base_url = conn.hub.settings.base_url
    if thread.repo_id is not None:
        repo = await repo_rows.find(conn, thread.repo_id)
        if repo is None or not await may_see(conn, repo, reader_id):
            return None
        return ThreadLocation(
            label=repo.full_name,
            url=f"{repo.url(base_url)}/discussions/{thread.number}",
            title=f"{thread.title} (#{thread.number})",
            headers=list_id(conn.hub, repo),
        )
    if thread.kind is ThreadKind.paper:
        url = f"{base_url}/papers/{thread.paper_id}"
        return ThreadLocation(label="papers", url=url, title=thread.title, headers={})
    owner = (await find_accounts(conn, [thread.owner_id])).get(thread.owner_id or "")
    if owner is None:
        return None
    folder = "posts" if thread.kind is ThreadKind.post else "blog"
    url = f"{base_url}/{folder}/{owner.name}/{thread.slug}"
    return ThreadLocation(label=owner.name, url=url, title=thread.title, headers={})


def _first_new_url(place: ThreadLocation, activity: Sequence[ActivityLine], thread: Thread) -> str:
    """Return the address of the first event that is new."""
    first = activity[0].event_id
    return place.url if first == thread.id else f"{place.url}#{first}"


async def list_activity(
    conn: Reader, thread: Thread, event_ids: Sequence[str]
) -> list[ActivityLine]:
    """Return the last of these events in words; what is hidden or deleted is left out."""
    activity = [
        found
        for event_id in event_ids[-MOST_LINES:]
        if (found := await _find_activity(conn, thread, event_id)) is not None
    ]
    accounts = await find_accounts(conn, [each.author_id for each in activity])
    return [
        ActivityLine(
            event_id=each.event_id,
            author=accounts[each.author_id].name if each.author_id in accounts else "somebody",
            did=each.did,
            text=None if each.text is None else _cut(each.text),
        )
        for each in activity
    ]


async def _find_activity(conn: Reader, thread: Thread, event_id: str) -> _RawActivity | None:
    if event_id == thread.id:
        return _opening_activity(thread)
    comment = await threads.find_comment(conn, event_id, thread_id=thread.id)
    if comment is not None:
        return None if comment.hidden else await _comment_activity(conn, thread, comment)
    changes = {change.id: change for change in await threads.list_changes(conn, thread.id)}
    return _change_activity(changes[event_id]) if event_id in changes else None


def _opening_activity(thread: Thread) -> _RawActivity:
    did = _OPENING_VERBS.get(thread.kind, "opened this")
    author_id = thread.author_id or thread.owner_id
    return _RawActivity(event_id=thread.id, author_id=author_id, did=did, text=thread.body)


async def _comment_activity(conn: Reader, thread: Thread, comment: Comment) -> _RawActivity:
    first = await threads.list_comments(conn, thread.id, limit=1)
    opens = thread.kind is ThreadKind.discussion and first[0].id == comment.id
    noun = "pull request" if thread.is_pull_request else "discussion"
    did = f"opened this {noun}" if opens else "commented"
    return _RawActivity(event_id=comment.id, author_id=comment.author_id, did=did, text=comment.raw)


def _change_activity(change: ThreadChange) -> _RawActivity:
    match change.type:
        case "status-change":
            did = _STATUS_VERBS.get(change.data["status"], "changed its status")
        case "title-change":
            did = "renamed it"
        case "commit":
            did = f"pushed a commit: {change.data['subject']}"
        case _:
            did = "changed it"
    return _RawActivity(event_id=change.id, author_id=change.author_id, did=did)


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT].rstrip() + " …"
