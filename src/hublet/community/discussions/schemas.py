"""Wire schemas of discussions and pull requests."""

from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field, StringConstraints

from hublet.community.comment_schemas import (
    MAX_COMMENT,
    Author,
    CommentEvent,
    CommentText,
    WriteComment,
)
from hublet.community.discussions import records
from hublet.community.discussions.records import MAX_TITLE, MIN_TITLE
from hublet.community.threads.records import Accounts, Comment, Emoji, ThreadChange, ThreadEmoji
from hublet.core.schema import ONE_LINE, Flag, ObjectId, Schema, Timestamp
from hublet.repos.schemas import RepoTypeName

StatusName = Literal["draft", "open", "closed", "merged"]


DiscussionTitle = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=MIN_TITLE, max_length=MAX_TITLE),
    ONE_LINE,
]
Number = Annotated[int, Field(ge=1)]


class CreateDiscussion(Schema):
    title: DiscussionTitle
    description: Annotated[str, StringConstraints(max_length=MAX_COMMENT)] = ""
    pullRequest: Flag = False


class CreatedDiscussion(Schema):
    num: Number
    url: str
    pullRequest: bool


class Reply(WriteComment):
    """A comment; `replyTo` names the comment that it answers, if any."""

    replyTo: ObjectId | MISSING = MISSING


class ChangeTitle(Schema):
    title: DiscussionTitle


class ChangeStatus(Schema):
    status: Literal["open", "closed"]
    comment: CommentText | MISSING = MISSING


class Pin(Schema):
    pinned: Flag


class Ignore(Schema):
    """Whether the caller wants to hear nothing more of a discussion."""

    ignore: Flag = True


class DiscussionRepo(Schema):
    name: str
    type: RepoTypeName


class Discussion(Schema):
    """A discussion or pull request."""

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


class TopReaction(Schema):
    reaction: Emoji
    count: int


class DiscussionItem(Discussion):
    """A discussion in a list, with the emoji on all its comments, the most frequent first."""

    topReactions: list[TopReaction]
    numReactionUsers: int

    @classmethod
    def of(
        cls, discussion: records.DiscussionRecord, page: records.DiscussionList, *, base_url: str
    ) -> Self:
        emoji = page.emoji.get(discussion.thread.id, ThreadEmoji())
        counts = [{"reaction": each.reaction, "count": each.count} for each in emoji.counts]
        return cls.model_validate(
            _card_fields(discussion, page.accounts, base_url)
            | {"topReactions": counts, "numReactionUsers": emoji.user_count}
        )


class DiscussionPage(Schema):
    """A part of a list: how many there are in all, and at which of them the part begins."""

    discussions: list[DiscussionItem]
    count: int
    start: int
    numClosedDiscussions: int

    @classmethod
    def of(cls, page: records.DiscussionList, *, base_url: str) -> Self:
        return cls(
            discussions=[
                DiscussionItem.of(each, page, base_url=base_url) for each in page.discussions
            ],
            count=page.count,
            start=page.start,
            numClosedDiscussions=page.closed,
        )


class _HistoryEvent(Schema):
    """What happened in a discussion beside comments."""

    id: ObjectId
    createdAt: Timestamp
    author: Author | MISSING = MISSING

    @classmethod
    def of(cls, change: ThreadChange, accounts: Accounts, *, base_url: str) -> Self:
        return cls.model_validate(_change_fields(change, accounts, base_url))


class StatusChangeData(Schema):
    status: StatusName


class StatusChange(_HistoryEvent):
    type: Literal["status-change"]
    data: StatusChangeData


class TitleChangeData(Schema):
    before: Annotated[str, Field(alias="from")]
    to: str


class TitleChange(_HistoryEvent):
    type: Literal["title-change"]
    data: TitleChangeData


class PinningChange(_HistoryEvent):
    type: Literal["pinning-change"]
    data: Pin


class CommitData(Schema):
    oid: str
    subject: str


class CommitEvent(_HistoryEvent):
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
    def of_details(cls, details: records.DiscussionView, *, base_url: str) -> Self:
        card = _card_fields(details.discussion, details.history.accounts, base_url)
        return cls.model_validate(
            card
            | {"events": _render_events(details.history, base_url)}
            | _comparison_fields(details)
        )


def _card_fields(
    discussion: records.DiscussionRecord, accounts: Accounts, base_url: str
) -> dict[str, Any]:
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
        "author": Author.of_id(thread.author_id, accounts, base_url=base_url),
        "repo": {"name": discussion.repo.full_name, "type": discussion.repo.type},
    }


def _render_events(history: records.DiscussionHistory, base_url: str) -> list[Any]:
    """Return comments and changes, oldest first."""
    entries: list[Comment | ThreadChange] = [*history.comments, *history.changes]
    entries.sort(key=lambda each: (each.created_at, each.id))
    return [_render_event(each, history, base_url) for each in entries]


def _render_event(
    entry: Comment | ThreadChange, history: records.DiscussionHistory, base_url: str
) -> Any:
    if isinstance(entry, ThreadChange):
        return _change_fields(entry, history.accounts, base_url)
    versions = history.versions.get(entry.id, ())
    return CommentEvent.of(
        entry,
        history.accounts,
        base_url=base_url,
        versions=versions,
        emoji=history.emoji.get(entry.id, ()),
    )


def _change_fields(change: ThreadChange, accounts: Accounts, base_url: str) -> dict[str, Any]:
    return {
        "id": change.id,
        "type": change.type,
        "createdAt": change.created_at,
        "author": Author.of_id(change.author_id, accounts, base_url=base_url),
        "data": change.data,
    }


def _comparison_fields(details: records.DiscussionView) -> dict[str, Any]:
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
        "filesWithConflicts": conflicts if details.may_read_files else bool(conflicts),
        "diff": MISSING if diff is None else diff.text,
        "diffTruncated": True if diff is not None and diff.is_cut else MISSING,
    }


class MergePullRequest(Schema):
    comment: CommentText | MISSING = MISSING


class MergedPullRequest(Schema):
    mergeCommitId: str


class FreedStorage(Schema):
    """What the deletion of a pull request's commits would free."""

    estimatedStorage: Annotated[int, Field(description="Bytes of large files; an estimate.")]
    refDeleted: Annotated[bool, Field(description="Whether its commits are gone already.")]
