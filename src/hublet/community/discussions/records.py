"""Records of discussions: threads with a number in a repository, and their views."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from hublet.community.threads.records import (
    Accounts,
    Comment,
    CommentRevision,
    EmojiCount,
    Thread,
    ThreadChange,
    ThreadEmoji,
    ThreadStatus,
)
from hublet.core.dataclasses import dataclass
from hublet.repos.records import MAIN, PULL_REQUESTS, Repo

MIN_TITLE = 3
MAX_TITLE = 200

OPEN_STATUSES = frozenset({ThreadStatus.draft, ThreadStatus.open})
CLOSED_STATUSES = frozenset({ThreadStatus.closed, ThreadStatus.merged})


class DiscussionSort(StrEnum):
    created = "recently-created"
    # The latest change comes first.
    trending = "trending"
    # The most users who reacted to its comments come first.
    reactions = "reactions"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscussionRecord:
    """A thread together with the repository it belongs to."""

    repo: Repo
    thread: Thread

    @property
    def number(self) -> int:
        assert self.thread.number is not None  # noqa: S101 - every discussion has one
        return self.thread.number

    @property
    def ref(self) -> str:
        """The ref to which the commits of a pull request are pushed."""
        return ref_of(self.number)

    @property
    def base(self) -> str:
        """The branch that a pull request is to be merged into."""
        return self.thread.base or MAIN

    @property
    def last_head(self) -> str | None:
        """The last commit of a pull request that was merged, or whose ref was deleted."""
        return (self.thread.details or {}).get("head")

    @property
    def noun(self) -> str:
        return "pull request" if self.thread.is_pull_request else "discussion"

    def url(self, base_url: str) -> str:
        return f"{self.repo.url(base_url)}/discussions/{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPage:
    """A thread, and what else its page shows of it and around it."""

    thread: Thread
    # Changes with all that the page shows.
    version: int
    # Whether the viewer wants to hear nothing of it.
    is_muted: bool
    # Of the repository's discussions and pull requests.
    open_count: int
    # Whether comments in other threads name it; not all of them are for everybody.
    has_references: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadReference:
    """A comment in another thread that names this one."""

    comment_id: str
    # The name of who wrote it.
    author: str
    # Where it was written.
    thread: Thread
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDiscussion:
    title: str
    description: str
    # The branch that a pull request is to be merged into; None for a mere discussion.
    base: str | None = None
    status: ThreadStatus = ThreadStatus.open


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscussionFilters:
    """Filters of a repository's discussions; None matches all."""

    is_pull_request: bool | None = None
    statuses: frozenset[ThreadStatus] = OPEN_STATUSES | CLOSED_STATUSES
    author: str | None = None
    # A part of the title.
    search: str | None = None
    sort: DiscussionSort = DiscussionSort.created


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscussionList:
    """A page of a list of discussions, with the accounts that it shows."""

    discussions: Sequence[DiscussionRecord]
    accounts: Accounts
    # The emoji of those that have any, by thread.
    emoji: Mapping[str, ThreadEmoji]
    # The position of the page in the list, and the length of the list.
    start: int
    count: int
    # How many are open or drafts, and how many closed or merged, whatever status is filtered by.
    open: int
    closed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestCommit:
    """A commit in the history of a pull request."""

    oid: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestDiff:
    text: str
    # Whether the text was cut because the diff is too long.
    is_cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscussionHistory:
    """The comments and changes of a thread, and the accounts that made them."""

    comments: Sequence[Comment]
    versions: Mapping[str, Sequence[CommentRevision]]
    # The emoji of comments that have any.
    emoji: Mapping[str, Sequence[EmojiCount]]
    changes: Sequence[ThreadChange]
    accounts: Accounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The comparison of a pull request with its base."""

    conflicts: Sequence[str] = ()
    diff: PullRequestDiff | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscussionView:
    discussion: DiscussionRecord
    history: DiscussionHistory
    # None for a mere discussion.
    comparison: Comparison | None = None
    # Whether the caller may read the files of the repository.
    may_read_files: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscussionRights:
    """What a caller may do in a discussion; every service checks it again."""

    # React, mute it, and hide one's own comments.
    may_discuss: bool = False
    may_comment: bool = False
    # Rename, close and open it: its author, and those who may write to the repository.
    may_change: bool = False
    # Pin it, merge it and hide comments of others.
    may_write: bool = False
    # Add commits to an open pull request: its author, and those who may write.
    may_push: bool = False


def is_open_pull_request_of(thread: Thread, user_id: str) -> bool:
    """Tell whether it is a pull request that is open, of this author."""
    is_open = thread.is_pull_request and thread.status in OPEN_STATUSES
    return is_open and thread.author_id == user_id


def ref_of(number: int) -> str:
    return f"{PULL_REQUESTS}{number}"


def number_of(ref: str) -> int | None:
    """Return the number of the pull request that a ref belongs to, if any."""
    number = ref.removeprefix(PULL_REQUESTS)
    return int(number) if number != ref and number.isdecimal() else None
