"""Paging through an inbox: reads a page, removes what is not visible any more, renders the rest."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from hublet.accounts.avatars import avatar_url
from hublet.community.threads.records import ThreadKind
from hublet.core.clock import from_micros
from hublet.core.database import Connection, Database, Reader, Row
from hublet.core.dataclasses import dataclass
from hublet.notifications.inbox import read_store
from hublet.notifications.inbox import service as inbox
from hublet.notifications.inbox.conditions import may_see
from hublet.notifications.inbox.read_store import PAGE
from hublet.notifications.records import HUB, InboxEntry, InboxPage, Selection

# By thread, in the order they came.
Participants = Mapping[str, list[dict[str, str]]]
# What may not be seen any more is removed a page at a time, so often before a response.
_ROUNDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenItems:
    """What has to be removed from an inbox: threads, and repositories with all their threads."""

    threads: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.threads or self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleItem:
    """An item, and the thread or the message of the hub that it is about."""

    entry: InboxEntry
    subject: Row
    is_message: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VisiblePage:
    """A page of items that the user may see, and its counts."""

    items: list[VisibleItem]
    total: int
    unread: int
    participants: Sequence[Row] = ()


async def read_page(
    database: Database, user_id: str, selection: Selection, *, page: int
) -> dict[str, Any]:
    """Return a page as the interface shows it."""
    found = await read_items(database, user_id, selection, page=page, with_participants=True)
    base_url = database.hub.settings.base_url
    participants = participants_by_thread(found.participants, base_url=base_url)
    items = [
        render_message(each.entry, each.subject)
        if each.is_message
        else render_thread(each.entry, each.subject, participants)
        for each in found.items
    ]
    view = found.unread if selection.unread else found.total
    count = {"view": view, "unread": found.unread, "all": found.total}
    return {"notifications": items, "count": count, "start": page * PAGE}


async def read_items(
    database: Database,
    user_id: str,
    selection: Selection,
    *,
    page: int,
    with_participants: bool = False,
) -> VisiblePage:
    """Return a page of items with what they are about.

    Items whose thread was deleted, or whose repository the user may not see any more, are removed
    from the inbox on the way.
    """
    rounds = 0
    while True:
        async with database.read() as conn:
            listed = await _list_entries(conn, user_id, selection, page)
            items, hidden = await _find_subjects(conn, user_id, listed.entries)
            threads = [each.entry.thread_id for each in items if not each.is_message]
            participants: Sequence[Row] = ()
            if with_participants and threads:
                participants = await read_store.list_participants(conn, threads)
        if not hidden or rounds == _ROUNDS:
            break
        rounds += 1
        async with database.transaction() as conn:
            await _remove_hidden(conn, user_id, hidden)
    return VisiblePage(
        items=items, total=listed.total, unread=listed.unread, participants=participants
    )


async def _list_entries(conn: Reader, user_id: str, selection: Selection, page: int) -> InboxPage:
    if selection.empty:
        return InboxPage(entries=[], total=0, unread=0)
    return await read_store.read_page_of(conn, user_id, selection, skip=page * PAGE)


async def _find_subjects(
    conn: Reader, user_id: str, entries: list[InboxEntry]
) -> tuple[list[VisibleItem], HiddenItems]:
    """Find what the entries are about that the user may see; return the others apart."""
    hidden = HiddenItems()
    if not entries:
        return [], hidden
    ids = [entry.thread_id for entry in entries]
    threads = await read_store.list_subjects(conn, ids, user_id=user_id)
    missing = [thread_id for thread_id in ids if thread_id not in threads]
    messages = await read_store.list_messages(conn, missing, user_id=user_id) if missing else {}
    items = []
    for entry in entries:
        if (message := messages.get(entry.thread_id)) is not None:
            items.append(VisibleItem(entry=entry, subject=message, is_message=True))
        elif (thread := threads.get(entry.thread_id)) is None:
            hidden.threads.append(entry.thread_id)
        elif thread["repo_id"] is not None and not may_see(thread, user_id):
            hidden.places.add(thread["repo_id"])
        else:
            items.append(VisibleItem(entry=entry, subject=thread))
    return items, hidden


async def _remove_hidden(conn: Connection, user_id: str, hidden: HiddenItems) -> None:
    await inbox.delete(conn, user_id, Selection().in_places(hidden.places))
    await inbox.delete(conn, user_id, Selection().of_threads(hidden.threads))


def participants_by_thread(
    rows: Iterable[Row], *, base_url: str
) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        avatar = avatar_url(base_url, row["user_id"])
        rendered = {"_id": row["user_id"], "avatar": avatar, "user": row["name"]}
        found.setdefault(row["thread_id"], []).append(rendered)
    return found


def render_thread(entry: InboxEntry, thread: Row, participants: Participants) -> dict[str, Any]:
    render = _RENDERERS[thread["kind"]]
    return _render_common(entry) | render(thread, participants.get(thread["id"], []))


def render_message(entry: InboxEntry, message: Row) -> dict[str, Any]:
    """Render a message of the hub: in the interface it is a post."""
    post = {
        "id": message["id"],
        "slug": message["id"],
        "authorName": HUB,
        "title": message["title"],
        "participating": [],
    }
    return _render_common(entry) | {"type": "post", "post": post}


def _render_common(entry: InboxEntry) -> dict[str, Any]:
    rendered: dict[str, Any] = {"updatedAt": _render_time(entry.updated_at), "read": entry.read}
    if entry.event_id is not None:
        rendered["discussionEventId"] = entry.event_id
    return rendered


def _render_time(micros: int) -> str:
    """Render a time with all its digits: as `lastUpdate` it has to mean this very moment."""
    return from_micros(micros).isoformat("T", "microseconds")[:-6] + "Z"


def _render_discussion(thread: Row, participating: list[dict[str, str]]) -> dict[str, Any]:
    name = f"{thread['owner_name']}/{thread['repo_name']}"
    return {
        "type": "repo",
        "repo": {"name": name, "type": thread["repo_type"]},
        "discussion": {
            "num": thread["number"],
            "title": thread["title"],
            "status": thread["status"],
            "id": thread["id"],
            "isPullRequest": bool(thread["is_pull_request"]),
            "participating": participating,
        },
    }


def _render_paper(thread: Row, participating: list[dict[str, str]]) -> dict[str, Any]:
    paper_id = thread["id"]
    return {
        "type": "paper",
        "paper": {"_id": paper_id, "title": thread["title"]},
        "paperDiscussion": {"id": paper_id, "participating": participating, "paperId": paper_id},
    }


def _render_post(thread: Row, participating: list[dict[str, str]]) -> dict[str, Any]:
    return {"type": "post", "post": _render_article(thread, participating)}


def _render_blog(thread: Row, participating: list[dict[str, str]]) -> dict[str, Any]:
    # Only what the public service itself publishes is canonical there.
    return {
        "type": "community_blog",
        "blog": _render_article(thread, participating) | {"canonical": False},
    }


def _render_article(thread: Row, participating: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "id": thread["id"],
        "slug": thread["slug"],
        "authorName": thread["owner_name"],
        "title": thread["title"],
        "participating": participating,
    }


_RENDERERS: dict[str, Callable[[Row, list[dict[str, str]]], dict[str, Any]]] = {
    ThreadKind.discussion: _render_discussion,
    ThreadKind.paper: _render_paper,
    ThreadKind.post: _render_post,
    ThreadKind.blog: _render_blog,
}
