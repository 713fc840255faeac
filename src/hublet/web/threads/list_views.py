"""Views of lists of threads, papers, posts and blogs, and of the form that opens a thread."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Self
from urllib.parse import urlencode

from hublet.community.discussions.records import (
    CLOSED_STATUSES,
    OPEN_STATUSES,
    DiscussionFilters,
    DiscussionList,
    DiscussionRecord,
    DiscussionSort,
)
from hublet.community.discussions.service import PAGE_SIZE
from hublet.community.papers.records import DailyPapersQuery, PaperRecord, PaperSort
from hublet.community.papers.service import Span, span_of
from hublet.community.threads.records import ThreadKind, ThreadStatus
from hublet.core.clock import now
from hublet.core.dataclasses import dataclass
from hublet.web.publications import FOLDERS, PublicationRow
from hublet.web.repo_head import RepoHead
from hublet.web.threads.content import EMOJI
from hublet.web.threads.forms import FormState

_STATUSES = {
    "open": OPEN_STATUSES,
    "closed": CLOSED_STATUSES,
    "all": OPEN_STATUSES | CLOSED_STATUSES,
}
_KINDS = {"all": None, "discussion": False, "pull_request": True}
_KIND_NAMES = {"all": "All", "discussion": "Discussions", "pull_request": "Pull requests"}
SORT_NAMES = {
    DiscussionSort.created: "Newest",
    DiscussionSort.trending: "Last changed",
    DiscussionSort.reactions: "Most reactions",
}
_MOST_EMOJI = 3

Badge = tuple[str, str, str]


def badge_of(discussion: DiscussionRecord) -> Badge:
    """Return text, tone and icon of the state of a thread."""
    thread = discussion.thread
    if thread.status is ThreadStatus.merged:
        return "Merged", "merged", "git-merge"
    if thread.status is ThreadStatus.draft:
        return "Draft", "", "git-pull-request"
    icon = "git-pull-request" if thread.is_pull_request else "message-square"
    if thread.status is ThreadStatus.closed:
        return "Closed", "bad" if thread.is_pull_request else "", icon
    return "Open", "ok", icon


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """What the address of a list says."""

    status: str = "open"
    kind: str = "all"
    author: str = ""
    search: str = ""
    sort: DiscussionSort = DiscussionSort.created
    page: int = 0

    @property
    def filters(self) -> DiscussionFilters:
        return DiscussionFilters(
            is_pull_request=_KINDS[self.kind],
            statuses=_STATUSES[self.status],
            author=self.author or None,
            search=self.search or None,
            sort=self.sort,
        )

    @property
    def is_narrow(self) -> bool:
        """Whether it leaves out more than the other states."""
        return bool(self.author or self.search or self.kind != "all")

    def address(self, **changed: str | int) -> str:
        """Return the query of another list; what is usual is left out. A new list begins at 0."""
        usual = {"status": "open", "type": "all", "sort": DiscussionSort.created, "p": 0}
        now = {
            "status": self.status,
            "type": self.kind,
            "author": self.author,
            "search": self.search,
            "sort": str(self.sort),
        }
        asked = {
            name: value
            for name, value in (now | changed).items()
            if value and value != usual.get(name)
        }
        return f"?{urlencode(asked)}" if asked else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRow:
    """A line of the list."""

    discussion: DiscussionRecord
    author: str | None
    badge: Badge
    # Characters and counts of the most frequent emoji.
    emoji: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListView:
    """What `threads/list.html` takes as `view`."""

    head: RepoHead
    query: ListQuery
    page: DiscussionList
    may_open: bool

    @property
    def path(self) -> str:
        return f"{self.head.path}/discussions"

    @property
    def tabs(self) -> list[tuple[str, str, str | None, int | None, bool]]:
        counts = {"open": self.page.open, "closed": self.page.closed}
        return [
            (
                self.path + self.query.address(status=status),
                status.capitalize(),
                None,
                count,
                status == self.query.status,
            )
            for status, count in counts.items()
        ]

    @property
    def kinds(self) -> list[tuple[str, str, bool]]:
        """Address, text, and whether it is the current one."""
        if not self.head.repo.type.has_git:
            return []
        return [
            (self.path + self.query.address(type=kind), name, kind == self.query.kind)
            for kind, name in _KIND_NAMES.items()
        ]

    @property
    def sorts(self) -> list[tuple[str, str, bool]]:
        return [(str(sort), name, sort is self.query.sort) for sort, name in SORT_NAMES.items()]

    @property
    def rows(self) -> list[ThreadRow]:
        return [self._row(discussion) for discussion in self.page.discussions]

    def _row(self, discussion: DiscussionRecord) -> ThreadRow:
        thread = discussion.thread
        author = self.page.accounts.get(thread.author_id or "")
        given = self.page.emoji.get(thread.id)
        counts = given.counts[:_MOST_EMOJI] if given else ()
        return ThreadRow(
            discussion=discussion,
            author=author.name if author else None,
            badge=badge_of(discussion),
            emoji=[(EMOJI[each.reaction], each.count) for each in counts],
        )

    @property
    def newer(self) -> str | None:
        if not self.query.page:
            return None
        return self.path + self.query.address(p=self.query.page - 1)

    @property
    def older(self) -> str | None:
        if self.page.start + PAGE_SIZE >= self.page.count:
            return None
        return self.path + self.query.address(p=self.query.page + 1)

    @property
    def is_unused(self) -> bool:
        """Whether nobody ever opened a thread here."""
        return not (self.page.open or self.page.closed or self.query.is_narrow)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewThreadView:
    """What `threads/new.html` takes as `view`."""

    head: RepoHead
    form: FormState
    base_url: str

    @property
    def upload_command(self) -> str:
        repo = self.head.repo
        kind = "" if repo.type == "model" else f" --repo-type {repo.type}"
        return f"export HF_ENDPOINT={self.base_url}\nhf upload {repo.full_name} .{kind} --create-pr"


# How a period is written in an address and on the page, by its parameter of the API.
_PERIODS = {
    "date": ("Day", "%Y-%m-%d", "%A, %-d %B %Y"),
    "week": ("Week", "%G-W%V", "Week %-V of %G"),
    "month": ("Month", "%Y-%m", "%B %Y"),
}
_PAPER_SORTS = {PaperSort.newest: "Newest", PaperSort.trending: "Most upvoted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPeriod:
    """A day, a week or a month of papers; without a name, all of them."""

    name: str = ""
    span: Span | None = None

    @classmethod
    def of(cls, *, day: str | None, week: str | None, month: str | None) -> Self:
        given = {"date": day, "week": week, "month": month}
        name = next((name for name, text in given.items() if text is not None), "")
        return cls(name=name, span=span_of(day=day, week=week, month=month))

    @property
    def title(self) -> str:
        return f"{self.span[0]:{_PERIODS[self.name][2]}}" if self.span else "The latest"

    def parameter(self, moment: datetime, name: str | None = None) -> dict[str, str]:
        """Return the parameter of the period around this moment."""
        name = name or self.name
        return {name: f"{moment:{_PERIODS[name][1]}}"} if name else {}

    @property
    def own(self) -> dict[str, str]:
        return self.parameter(self.span[0]) if self.span else {}

    @property
    def before(self) -> dict[str, str] | None:
        return self.parameter(self.span[0] - timedelta(days=1)) if self.span else None

    @property
    def after(self) -> dict[str, str] | None:
        return self.parameter(self.span[1]) if self.span and self.span[1] <= now() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperListView:
    """What the template of the list of papers takes as `view`."""

    query: DailyPapersQuery
    period: PaperPeriod
    # Papers, the names of those who submitted them, and the beginnings of their abstracts.
    rows: Sequence[tuple[PaperRecord, str, str]]
    # Whether there may be more on the next page.
    is_full: bool

    def url(
        self, period: dict[str, str] | None = None, *, sort: PaperSort | None = None, page: int = 0
    ) -> str:
        """Return the address of the list with one thing changed."""
        period = self.period.own if period is None else period
        sort = sort or self.query.sort
        found = {
            **period,
            "submitter": self.query.submitter,
            "sort": "" if sort is PaperSort.newest else sort,
            "p": str(page) if page else "",
        }
        query = urlencode({name: value for name, value in found.items() if value})
        return f"/papers?{query}" if query else "/papers"

    @property
    def periods(self) -> list[tuple[str, str, bool]]:
        """Addresses of all, and of the day, week and month that are shown or go on now."""
        moment = self.period.span[0] if self.period.span else now()
        found = [(self.url({}), "All", not self.period.name)]
        for name, (text, *_) in _PERIODS.items():
            around = self.period.parameter(moment, name)
            found.append((self.url(around), text, name == self.period.name))
        return found

    @property
    def sorts(self) -> list[tuple[str, str, bool]]:
        return [
            (self.url(sort=sort), text, sort is self.query.sort)
            for sort, text in _PAPER_SORTS.items()
        ]

    @property
    def earlier(self) -> str | None:
        return self.url(self.period.before) if self.period.before else None

    @property
    def later(self) -> str | None:
        return self.url(self.period.after) if self.period.after else None

    @property
    def newer(self) -> str | None:
        return self.url(page=self.query.page - 1) if self.query.page else None

    @property
    def older(self) -> str | None:
        return self.url(page=self.query.page + 1) if self.is_full else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationListView:
    """What the template of a list of posts or blogs takes as `view`."""

    kind: ThreadKind
    author: str
    page: int
    rows: Sequence[PublicationRow]
    is_full: bool

    @property
    def path(self) -> str:
        return f"/{FOLDERS[self.kind]}"

    @property
    def title(self) -> str:
        return "Posts" if self.kind is ThreadKind.post else "Blog"

    @property
    def newer(self) -> str | None:
        return self._url(self.page - 1) if self.page else None

    @property
    def older(self) -> str | None:
        return self._url(self.page + 1) if self.is_full else None

    def _url(self, page: int) -> str:
        found = {"author": self.author, "p": str(page) if page else ""}
        query = urlencode({name: value for name, value in found.items() if value})
        return f"{self.path}?{query}" if query else self.path
