"""View of one thread: everything that its pages print, also the editor of conflicts: what both sides say, what
was typed, and what a form asks for.
"""

import shlex
from collections.abc import Mapping, Sequence
from enum import StrEnum

from markupsafe import Markup

from hublet.community.discussions.comparison import Sides
from hublet.community.discussions.conflicts import (
    MAX_FILES,
    ConflictingFile,
    ConflictSide,
    Solution,
)
from hublet.community.discussions.records import OPEN_STATUSES, DiscussionRecord, DiscussionRights
from hublet.community.discussions.view import PullRequestState, ThreadAudience
from hublet.community.papers.records import PaperRecord
from hublet.community.threads.records import PublicThreadRights, Thread, ThreadKind, ThreadStatus
from hublet.core.dataclasses import dataclass
from hublet.core.pages import Frame
from hublet.repos.records import HEADS, Repo
from hublet.web.publications import FOLDERS, plain_title, text_below_title
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
    # The comment whose text is edited, the one that is quoted, and the one that is answered.
    edit: str = ""
    quote: str = ""
    reply: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationView:
    """The comments of a thread of any kind, and the forms beside them."""

    audience: ThreadAudience
    entries: Sequence[TimelineEntry]
    # How many entries are left out.
    cut: int
    query: ThreadQuery
    form: FormState
    # Changes with all that the page shows.
    version: int

    @property
    def comment_text(self) -> str:
        """What stands in the field for a new comment."""
        quoted = self._find_comment(self.query.quote)
        lines = quoted.comment.raw.splitlines() if quoted else []
        quotation = "".join(f"> {line}\n" for line in lines) + "\n" if lines else ""
        return self.form.typed("comment", "comment", quotation)

    @property
    def answered(self) -> CommentEntry | None:
        """The comment that a new one would answer."""
        return self._find_comment(self.form.typed("comment", "reply_to", self.query.reply))

    def _find_comment(self, comment_id: str) -> CommentEntry | None:
        return next(
            (
                each
                for each in self.entries
                if isinstance(each, CommentEntry)
                and each.id == comment_id
                and not each.comment.hidden
            ),
            None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadView(ConversationView):
    """What the templates of a thread take as `view`."""

    head: RepoHead
    base_url: str
    discussion: DiscussionRecord
    rights: DiscussionRights
    author: str
    # None for a mere discussion, and where commits are gone.
    state: PullRequestState | None
    # Whether it is a pull request whose ref is still there.
    has_ref: bool

    @property
    def noun(self) -> str:
        return self.discussion.noun

    @property
    def is_disabled(self) -> bool:
        return self.head.repo.discussions_disabled

    @property
    def next_status(self) -> str:
        """What the button beside "Comment" does: close it, open it again, or nothing."""
        if not self.rights.may_change or self.discussion.thread.status is ThreadStatus.merged:
            return ""
        return "close" if self.is_open else "open"

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicHead:
    """What forms of papers, posts and blogs take where those of a repository take its head."""

    frame: Frame | None
    form_token: str
    editor_path: str = "/posts"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperView:
    """What only a paper has."""

    record: PaperRecord
    submitter: str
    # The name of the account of each author, where one claimed to be it.
    author_names: Sequence[str]
    is_upvoted: bool
    # Models, datasets and Spaces that name it among their tags.
    repos: Sequence[tuple[Repo, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicThreadView(ConversationView):
    """What the template of a paper, post or blog takes as `view`."""

    head: PublicHead
    thread: Thread
    path: str
    rights: PublicThreadRights
    html: Markup
    author: str
    # The owner of a blog, if that is not the author.
    organization: str | None = None
    paper: PaperView | None = None

    # Where comments can be closed there is another button beside "Comment".
    next_status: str = ""
    is_disabled: bool = False

    @property
    def noun(self) -> str:
        return str(self.thread.kind)

    @property
    def title(self) -> str:
        return plain_title(self.thread)

    @property
    def folder(self) -> str:
        return FOLDERS[self.thread.kind]

    @property
    def is_titled(self) -> bool:
        """Whether the title is more than the first line of the text below it."""
        text = (self.thread.body or "").strip()
        return self.thread.kind is not ThreadKind.post or text_below_title(self.thread) == text


# What a form sends of each file: where it is taken from, and the text that was edited.
TAKE, TEXT = "take:", "text:"
_EDITED = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class SolutionForm:
    """What somebody chose and typed, by path."""

    sides: Sides
    taken: Mapping[str, str]
    texts: Mapping[str, str]

    @property
    def solution(self) -> Solution:
        sides = {str(side): side for side in ConflictSide}
        return {
            path: sides.get(chosen, self.texts.get(path, ""))
            for path, chosen in self.taken.items()
            if chosen in sides or path in self.texts
        }


def read_solution(form: Mapping[str, str]) -> SolutionForm:
    def fields(start: str) -> dict[str, str]:
        return {
            name.removeprefix(start): value.replace("\r\n", "\n")
            for name, value in form.items()
            if name.startswith(start)
        }

    sides = Sides(base=form.get("base", ""), head=form.get("head", ""))
    return SolutionForm(sides=sides, taken=fields(TAKE), texts=fields(TEXT))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToSolve:
    """A file in the editor."""

    file: ConflictingFile
    # Where it is taken from: text, base or head.
    chosen: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictsView:
    """What `threads/conflicts.html` takes as `conflicts`."""

    thread: ThreadView
    # None when the pull request is not open any more.
    sides: Sides | None
    files: Sequence[ConflictingFile] = ()
    typed: SolutionForm | None = None
    problem: str | None = None

    @property
    def has_moved(self) -> bool:
        """Whether what was typed was meant for other commits than those of now."""
        return self.typed is not None and self.typed.sides != self.sides

    @property
    def is_solvable(self) -> bool:
        return len(self.files) <= MAX_FILES and all(each.is_solvable for each in self.files)

    @property
    def to_solve(self) -> list[FileToSolve]:
        return [self._file(each) for each in self.files]

    @property
    def lost_texts(self) -> Mapping[str, str]:
        """What was typed and stands in no field of the page."""
        return self.typed.texts if self.typed is not None and self.has_moved else {}

    def _file(self, file: ConflictingFile) -> FileToSolve:
        usual = _EDITED if file.merged is not None else str(ConflictSide.head)
        typed = None if self.has_moved else self.typed
        text = file.merged or ""
        if typed is None:
            return FileToSolve(file=file, chosen=usual, text=text)
        return FileToSolve(
            file=file,
            chosen=typed.taken.get(file.path, usual),
            text=typed.texts.get(file.path, text),
        )
