"""Discussions and pull requests on the wire."""

from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, BeforeValidator, Field, StringConstraints

from hublet.community.authors.records import Accounts
from hublet.community.authors.schemas import Author
from hublet.community.discussions import records
from hublet.community.discussions.records import MAX_TITLE, MIN_TITLE
from hublet.community.threads.records import Change, Comment
from hublet.community.threads.schemas import MAX_COMMENT, CommentEvent, CommentText, WriteComment
from hublet.core.schema import ObjectId, Schema, Timestamp

StatusName = Literal["draft", "open", "closed", "merged"]


def _in_one_line(text: Any) -> Any:
    return " ".join(text.split()) if isinstance(text, str) else text


Title = Annotated[
    str,
    StringConstraints(min_length=MIN_TITLE, max_length=MAX_TITLE),
    BeforeValidator(_in_one_line),
]
Number = Annotated[int, Field(ge=1)]


class CreateDiscussion(Schema):
    title: Title
    description: Annotated[str, StringConstraints(max_length=MAX_COMMENT)] = ""
    pullRequest: bool = False


class CreatedDiscussion(Schema):
    num: Number
    url: str
    pullRequest: bool


class Reply(WriteComment):
    """A comment; `replyTo` names the comment that it answers, if any."""

    replyTo: ObjectId | MISSING = MISSING


class ChangeTitle(Schema):
    title: Title


class ChangeStatus(Schema):
    status: Literal["open", "closed"]
    comment: CommentText | MISSING = MISSING


class Pin(Schema):
    pinned: bool


class Ignore(Schema):
    """Whether the caller wants to hear nothing more of a discussion."""

    ignore: bool = True


class DiscussionRepo(Schema):
    name: str
    type: Literal["model", "dataset", "space", "kernel"]


class Discussion(Schema):
    """A discussion or pull request in a list."""

    id: ObjectId
    num: Number
    title: str
    status: StatusName
    createdAt: Timestamp
    updatedAt: Timestamp
    isPullRequest: bool
    pinned: bool
    # The first message counts as well.
    numComments: int
    author: Author | MISSING = MISSING
    repo: DiscussionRepo

    @classmethod
    def of(cls, discussion: records.Discussion, accounts: Accounts, *, base_url: str) -> Self:
        return cls.model_validate(_card(discussion, accounts, base_url))


class DiscussionPage(Schema):
    """A part of a list: how many there are in all, and at which of them the part begins."""

    discussions: list[Discussion]
    count: int
    start: int
    numClosedDiscussions: int

    @classmethod
    def of(cls, page: records.Page, *, base_url: str) -> Self:
        return cls(
            discussions=[
                Discussion.of(each, page.accounts, base_url=base_url) for each in page.discussions
            ],
            count=page.count,
            start=page.start,
            numClosedDiscussions=page.closed,
        )


class _Change(Schema):
    """What happened in a discussion beside comments."""

    id: ObjectId
    createdAt: Timestamp
    author: Author | MISSING = MISSING

    @classmethod
    def of(cls, change: Change, accounts: Accounts, *, base_url: str) -> Self:
        return cls.model_validate(_event(change, accounts, base_url))


class StatusChangeData(Schema):
    status: StatusName


class StatusChange(_Change):
    type: Literal["status-change"]
    data: StatusChangeData


class TitleChangeData(Schema):
    before: Annotated[str, Field(alias="from")]
    to: str


class TitleChange(_Change):
    type: Literal["title-change"]
    data: TitleChangeData


class PinningChange(_Change):
    type: Literal["pinning-change"]
    data: Pin


class CommitData(Schema):
    oid: str
    subject: str


class CommitEvent(_Change):
    """A commit of a pull request, or the one that it became when it was merged."""

    type: Literal["commit"]
    data: CommitData


DiscussionEvent = Annotated[
    CommentEvent | StatusChange | TitleChange | PinningChange | CommitEvent,
    Field(discriminator="type"),
]


class NewStatus(Schema):
    newStatus: StatusChange


class NewTitle(Schema):
    newTitle: TitleChange


class Changes(Schema):
    """Which branch a pull request wants to change, and the commit it became."""

    base: str
    mergeCommitId: str | MISSING = MISSING


class DiscussionDetails(Discussion):
    """A discussion with all that happened in it; for a pull request also what it changes."""

    events: list[DiscussionEvent]
    changes: Changes | MISSING = MISSING
    # To those who may not read the files: whether there are any.
    filesWithConflicts: list[str] | bool | MISSING = MISSING
    diff: str | MISSING = MISSING
    # Present when the diff shows only the first files, because all would be too many.
    diffTruncated: Literal[True] | MISSING = MISSING

    @classmethod
    def of_details(cls, details: records.Details, *, base_url: str) -> Self:
        card = _card(details.discussion, details.history.accounts, base_url)
        return cls.model_validate(
            card | {"events": _events(details.history, base_url)} | _comparison(details)
        )


def _card(discussion: records.Discussion, accounts: Accounts, base_url: str) -> dict[str, Any]:
    thread = discussion.thread
    return {
        "id": thread.id,
        "num": thread.number,
        "title": thread.title,
        "status": thread.status,
        "createdAt": thread.created_at,
        "updatedAt": thread.updated_at,
        "isPullRequest": thread.is_pull_request,
        "pinned": thread.pinned,
        "numComments": thread.comment_count,
        "author": Author.found(thread.author_id, accounts, base_url=base_url),
        "repo": {"name": discussion.repo.full_name, "type": discussion.repo.type},
    }


def _events(history: records.History, base_url: str) -> list[Any]:
    """Return comments and changes in the order in which they happened."""
    happened: list[Comment | Change] = [*history.comments, *history.changes]
    happened.sort(key=lambda each: (each.created_at, each.id))
    return [_shown(each, history, base_url) for each in happened]


def _shown(happened: Comment | Change, history: records.History, base_url: str) -> Any:
    if isinstance(happened, Change):
        return _event(happened, history.accounts, base_url)
    versions = history.versions.get(happened.id, ())
    return CommentEvent.of(happened, history.accounts, base_url=base_url, versions=versions)


def _event(change: Change, accounts: Accounts, base_url: str) -> dict[str, Any]:
    return {
        "id": change.id,
        "type": change.type,
        "createdAt": change.created_at,
        "author": Author.found(change.author_id, accounts, base_url=base_url),
        "data": change.data,
    }


def _comparison(details: records.Details) -> dict[str, Any]:
    comparison = details.comparison
    if comparison is None:
        return {}
    conflicts = list(comparison.conflicts)
    diff = comparison.diff
    return {
        "changes": {
            "base": details.discussion.base,
            "mergeCommitId": details.discussion.thread.merge_commit_id or MISSING,
        },
        "filesWithConflicts": conflicts if details.may_read else bool(conflicts),
        "diff": MISSING if diff is None else diff.text,
        "diffTruncated": True if diff is not None and diff.is_cut else MISSING,
    }
