"""View of one thread: everything that its pages print."""

import shlex
from collections.abc import Sequence
from enum import StrEnum

from hublet.community.discussions.records import OPEN_STATUSES, DiscussionRecord, DiscussionRights
from hublet.community.discussions.view import PullRequestState, ThreadAudience
from hublet.community.threads.records import ThreadStatus
from hublet.core.dataclasses import dataclass
from hublet.repos.records import HEADS
from hublet.web.repo_head import RepoHead
from hublet.web.threads.forms import FormState
from hublet.web.threads.list_views import Badge, badge_of
from hublet.web.threads.timeline import CommentEntry, TimelineEntry


class ThreadTab(StrEnum):
    """The tabs of a pull request."""

    conversation = "conversation"
    commits = "commits"
    files = "files"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadQuery:
    """What the address of a thread says."""

    tab: ThreadTab = ThreadTab.conversation
    is_whole: bool = False
    # The comment whose text is edited, and the one that is quoted.
    edit: str = ""
    quote: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadView:
    """What the templates of a thread take as `view`."""

    head: RepoHead
    base_url: str
    discussion: DiscussionRecord
    rights: DiscussionRights
    audience: ThreadAudience
    author: str
    entries: Sequence[TimelineEntry]
    # How many entries are left out.
    cut: int
    # None for a mere discussion, and where commits are gone.
    state: PullRequestState | None
    query: ThreadQuery
    form: FormState
    # Changes with all that the page shows.
    version: int
    # Whether it is a pull request whose ref is still there.
    has_ref: bool

    @property
    def path(self) -> str:
        return f"{self.head.path}/discussions/{self.discussion.number}"

    @property
    def is_pull_request(self) -> bool:
        return self.discussion.thread.is_pull_request

    @property
    def badge(self) -> Badge:
        return badge_of(self.discussion)

    @property
    def is_open(self) -> bool:
        return self.discussion.thread.status in OPEN_STATUSES

    @property
    def is_draft(self) -> bool:
        return self.discussion.thread.status is ThreadStatus.draft

    @property
    def base(self) -> str:
        return self.discussion.base.removeprefix(HEADS)

    @property
    def tabs(self) -> list[tuple[str, str, str | None, int | None, bool]]:
        comments = self.discussion.thread.comment_count
        state = self.state if self.head.may_read else None
        found: list[tuple[ThreadTab, str, str, int | None]] = [
            (ThreadTab.conversation, "", "Conversation", comments),
            (ThreadTab.commits, "/commits", "Commits", state.commit_count if state else None),
            (ThreadTab.files, "/files", "Files changed", state.file_count if state else None),
        ]
        return [
            (self.path + end, text, None, count, tab is self.query.tab)
            for tab, end, text, count in found
        ]

    @property
    def conflicting(self) -> set[str]:
        """The paths of files that changed on both sides."""
        return {each.path for each in self.state.conflicts} if self.state else set()

    @property
    def is_empty_draft(self) -> bool:
        """Whether it is a pull request to which nothing was pushed yet."""
        return self.is_open and self.state is not None and not self.state.commit_count

    @property
    def clone_command(self) -> str:
        return f"git clone {shlex.quote(self.head.repo.url(self.base_url))}"

    @property
    def push_commands(self) -> str:
        return f"git push origin HEAD:{self.discussion.ref}"

    @property
    def merge_commands(self) -> str:
        number, ref, base = self.discussion.number, self.discussion.ref, shlex.quote(self.base)
        return (
            f"git fetch origin {ref}:pr/{number} {base}\n"
            f"git checkout pr/{number} && git merge {shlex.quote('origin/' + self.base)}\n"
            "# edit the files that are named above\n"
            f"git commit -a && git push origin pr/{number}:{ref}"
        )

    @property
    def try_command(self) -> str:
        repo = self.head.repo
        kind = "" if repo.type == "model" else f" \\\n  --repo-type {repo.type}"
        return (
            f"export HF_ENDPOINT={self.base_url}\n"
            f"hf download {repo.full_name}{kind} \\\n  --revision {self.discussion.ref}"
        )

    @property
    def comment_text(self) -> str:
        """What stands in the field for a new comment."""
        return self.form.typed("comment", "comment", self._quotation)

    @property
    def _quotation(self) -> str:
        quoted = next(
            (
                each.comment.raw
                for each in self.entries
                if isinstance(each, CommentEntry)
                and each.id == self.query.quote
                and not each.comment.hidden
            ),
            "",
        )
        return "".join(f"> {line}\n" for line in quoted.splitlines()) + "\n" if quoted else ""
