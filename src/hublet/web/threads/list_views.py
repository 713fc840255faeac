"""Views of the list of threads and of the form that opens one."""

from collections.abc import Sequence
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
from hublet.community.threads.records import ThreadStatus
from hublet.core.dataclasses import dataclass
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
