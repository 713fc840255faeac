"""Views of the inbox: its rows, and their groups."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from hublet.community.threads.records import ThreadKind
from hublet.core.clock import from_micros
from hublet.core.dataclasses import dataclass
from hublet.notifications.inbox.paging import VisibleItem, VisiblePage
from hublet.notifications.inbox.read_store import PAGE
from hublet.notifications.records import (
    BLOG,
    HUB,
    PAPER,
    POST,
    InboxChange,
    InboxSummary,
    Involvement,
    LastEvent,
)
from hublet.repos.records import RepoType
from hublet.web.inbox.schemas import PATH, InboxQuery

TYPES: dict[str, str] = {
    **{str(type_): type_.plural.capitalize() for type_ in RepoType},
    PAPER: "Papers",
    POST: "Posts",
    BLOG: "Blogs",
}
_STATUS_VERBS = {"open": "opened it again", "closed": "closed it", "merged": "merged it"}
_VERBS = {"comment": "wrote", "title-change": "renamed it", "commit": "pushed"}
_REASONS = {
    Involvement.mentioned: "you were mentioned",
    Involvement.participating: "you take part",
    Involvement.watched: "you watch it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxRow:
    """A line of the inbox."""

    id: str
    path: str
    title: str
    read: bool
    moment: datetime
    # Who did what last, and why it is here.
    last: str
    reason: str
    # Text, tone and icon.
    badge: tuple[str, str, str]
    is_message: bool
    number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxGroup:
    """Rows of one repository, of one author's posts, or of one type."""

    # As the counts name it: the id of a place, or a type.
    facet: str
    title: str
    # The address of what it is about.
    path: str | None
    # A type of repository, or an icon.
    repo_type: str | None
    rows: list[InboxRow]
    # How many there are on all pages.
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxView:
    """What `inbox/inbox.html` takes as `view`."""

    query: InboxQuery
    summary: InboxSummary
    groups: Sequence[InboxGroup]
    # How many match on all pages, and how many of these are unread.
    total: int
    unread: int
    form_token: str
    change: InboxChange | None = None
    problem: str | None = None
    # How many repositories, people and organizations are watched; known when nothing is shown.
    watched: tuple[int, int] = (0, 0)

    @property
    def rows(self) -> list[InboxRow]:
        return [row for group in self.groups for row in group.rows]

    @property
    def matching(self) -> int:
        return self.unread if self.query.readStatus == "unread" else self.total

    @property
    def tabs(self) -> list[tuple[str, str, str | None, int, bool]]:
        counts = (
            ("all", "Unread", self.summary.unread),
            ("participating", "Participating", self.summary.participating),
            ("mentions", "Mentions", self.summary.mentioned),
        )
        tabs = [
            (
                self.query.address(mention=mention, readStatus="unread"),
                text,
                None,
                count,
                self.query.readStatus == "unread" and self.query.mention == mention,
            )
            for mention, text, count in counts
        ]
        address = self.query.address(mention="all", readStatus="all")
        return [*tabs, (address, "All", None, self.summary.total, self.query.readStatus == "all")]

    @property
    def newer(self) -> str | None:
        return self.query.address(p=self.query.p - 1) if self.query.p else None

    @property
    def older(self) -> str | None:
        is_last = (self.query.p + 1) * PAGE >= self.matching
        return None if is_last else self.query.address(p=self.query.p + 1)

    @property
    def types(self) -> list[tuple[str, str, bool]]:
        return [(key, text, key == self.query.repoType) for key, text in TYPES.items()]

    @property
    def notice(self) -> str:
        """Say what was just changed."""
        if self.change is None:
            return ""
        if self.change.muted:
            threads = (
                "1 thread is" if self.change.muted == 1 else f"{self.change.muted:,} threads are"
            )
            return f"{threads} muted."
        return f"{self.change.marked:,} {'done' if self.change.read else 'unread again'}."


def facet_of(item: VisibleItem) -> str:
    """Return by which count an item's group is counted."""
    if item.entry.place_id is not None:
        return item.entry.place_id
    return PAPER if item.subject["kind"] == ThreadKind.paper else BLOG


def groups_of(
    page: VisiblePage,
    query: InboxQuery,
    *,
    events: Mapping[str, LastEvent],
    counts: Mapping[str, tuple[int, int]],
) -> list[InboxGroup]:
    """Return the items by their place, that with the newest item first; or all as one."""
    found: dict[str, list[VisibleItem]] = {}
    for item in page.items:
        found.setdefault("" if query.group == "none" else facet_of(item), []).append(item)
    return [
        InboxGroup(
            facet=facet,
            rows=[_row(item, events.get(item.entry.last_event_id or "")) for item in items],
            count=_count(items, query, counts.get(facet)),
            **_title(items[0]),
        )
        for facet, items in found.items()
    ]


def _count(items: Sequence[VisibleItem], query: InboxQuery, counted: tuple[int, int] | None) -> int:
    # The stored counts know types, places and involvement, and nothing of the other filters.
    if counted is None or query.q or query.lastUpdate or query.paperId or query.articleId:
        return len(items)
    total, unread = counted
    return unread if query.readStatus == "unread" else total


def _title(item: VisibleItem) -> dict[str, Any]:
    if item.is_message:
        return {"title": HUB.capitalize(), "path": None, "repo_type": None}
    subject = item.subject
    owner = subject["owner_name"]
    if subject["repo_id"] is not None:
        name = f"{owner}/{subject['repo_name']}"
        path = f"/{RepoType(subject['repo_type']).prefix}{quote(name)}"
        return {"title": name, "path": path, "repo_type": subject["repo_type"]}
    if subject["kind"] == ThreadKind.post:
        return {"title": f"Posts of {owner}", "path": f"/{quote(owner)}", "repo_type": None}
    is_paper = subject["kind"] == ThreadKind.paper
    title, path = ("Papers", "/papers") if is_paper else ("Blogs", "/blog")
    return {"title": title, "path": path, "repo_type": None}


def _row(item: VisibleItem, event: LastEvent | None) -> InboxRow:
    entry, subject = item.entry, item.subject
    path = message_path(entry.thread_id) if item.is_message else _thread_path(item)
    return InboxRow(
        id=entry.thread_id,
        path=path,
        title=subject["title"],
        read=entry.read,
        moment=from_micros(entry.updated_at),
        last="" if event is None else f"{event.author} {_verb(event)}",
        reason="" if item.is_message else _REASONS[entry.involvement],
        badge=_badge(item),
        is_message=item.is_message,
        number=None if item.is_message else subject["number"],
    )


def message_path(message_id: str) -> str:
    return f"{PATH}/messages/{message_id}"


def _thread_path(item: VisibleItem) -> str:
    """Return the address of the first thing in a thread that was not seen yet."""
    subject, event_id = item.subject, item.entry.event_id
    anchor = f"#{event_id}" if event_id and event_id != subject["id"] else ""
    owner = quote(subject["owner_name"] or "")
    if subject["repo_id"] is not None:
        prefix = RepoType(subject["repo_type"]).prefix
        return f"/{prefix}{owner}/{subject['repo_name']}/discussions/{subject['number']}{anchor}"
    if subject["kind"] == ThreadKind.paper:
        return f"/papers/{quote(subject['paper_id'])}{anchor}"
    folder = "posts" if subject["kind"] == ThreadKind.post else "blog"
    return f"/{folder}/{owner}/{quote(subject['slug'])}{anchor}"


def _verb(event: LastEvent) -> str:
    if event.type == "status-change":
        return _STATUS_VERBS.get(event.status or "", "changed its status")
    return _VERBS.get(event.type, "changed it")


def _badge(item: VisibleItem) -> tuple[str, str, str]:
    if item.is_message:
        return "Message of the hub", "", "inbox"
    subject = item.subject
    match subject["status"]:
        case "merged":
            return "Merged", "merged", "git-merge"
        case "closed":
            is_request = bool(subject["is_pull_request"])
            return "Closed", "bad", "git-pull-request" if is_request else "message-square"
        case "draft":
            return "Draft", "", "git-pull-request"
        case "open":
            is_request = bool(subject["is_pull_request"])
            return "Open", "ok", "git-pull-request" if is_request else "message-square"
    return str(subject["kind"]).capitalize(), "", "book-open"
