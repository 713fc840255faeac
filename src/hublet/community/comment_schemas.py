"""Wire schemas of comments and their authors, shared by all kinds of threads."""

from collections.abc import Sequence
from html import escape
from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, AfterValidator, Field, StringConstraints

from hublet.accounts.avatars import avatar_url
from hublet.accounts.records import Account
from hublet.community.threads.records import (
    Accounts,
    Comment,
    CommentEmoji,
    CommentRevision,
    Emoji,
    EmojiCount,
)
from hublet.core.schema import ONE_LINE, ObjectId, Schema, Timestamp


class Author(Schema):
    """A user or an organization, under whose name something stands."""

    id: Annotated[ObjectId, Field(alias="_id")]
    name: str
    fullname: str
    avatarUrl: str
    type: Literal["user", "service-account", "org"]

    @classmethod
    def of(cls, account: Account, *, base_url: str) -> Self:
        return cls.model_validate(
            {
                "_id": account.id,
                "name": account.name,
                "fullname": account.fullname,
                "avatarUrl": avatar_url(base_url, account.id),
                "type": account.wire_type,
            }
        )

    @classmethod
    def of_id(cls, account_id: str | None, accounts: Accounts, *, base_url: str) -> Self | MISSING:
        """Return the author, or MISSING: the public clients fail on null, not on an absent field."""
        account = accounts.get(account_id) if account_id else None
        return cls.of(account, base_url=base_url) if account else MISSING


MAX_COMMENT = 65_536

# The clients need a text also of a hidden comment.
HIDDEN_TEXT = "This comment has been hidden."


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must say something, blanks alone do not count")
    return text


# For texts that must not be blank; they are stored as they were typed.
NOT_BLANK = AfterValidator(_check_not_blank)

CommentText = Annotated[str, Field(min_length=1, max_length=MAX_COMMENT), NOT_BLANK]
Title = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=3, max_length=200),
    ONE_LINE,
]


class CommentVersion(Schema):
    """What a comment says, or said; the HTML is the text in paragraphs, nothing more."""

    raw: str
    html: str
    updatedAt: Timestamp
    author: Author | MISSING = MISSING


class ReactionCount(Schema):
    """How many users reacted with an emoji, and the names of the first 20 of them."""

    reaction: Emoji
    users: list[str]
    count: int

    @classmethod
    def of(cls, emoji: EmojiCount) -> Self:
        return cls(reaction=emoji.reaction, users=list(emoji.users), count=emoji.count)


class CommentReactions(Schema):
    """The emoji on a comment, the most frequent first."""

    reactions: list[ReactionCount]


class UserReaction(Schema):
    """An emoji of one user."""

    reaction: Emoji
    user: Author | MISSING = MISSING
    createdAt: Timestamp

    @classmethod
    def of(cls, emoji: CommentEmoji, accounts: Accounts, *, base_url: str) -> Self:
        return cls(
            reaction=emoji.reaction,
            user=Author.of_id(emoji.user_id, accounts, base_url=base_url),
            createdAt=emoji.created_at,
        )


class CommentData(CommentReactions):
    edited: bool
    hidden: bool
    # The name of who hid it.
    hiddenBy: str | MISSING = MISSING
    latest: CommentVersion
    # The comment it answers.
    parentCommentId: ObjectId | MISSING = MISSING
    # What it said before, oldest first; shown where a thread is shown as a whole.
    history: list[CommentVersion] | MISSING = MISSING


class CommentEvent(Schema):
    id: ObjectId
    type: Literal["comment"] = "comment"
    createdAt: Timestamp
    author: Author | MISSING = MISSING
    data: CommentData

    @classmethod
    def of(
        cls,
        comment: Comment,
        accounts: Accounts,
        *,
        base_url: str,
        versions: Sequence[CommentRevision] | None = None,
        emoji: Sequence[EmojiCount] = (),
    ) -> Self:
        """Render a comment; a hidden one shows neither its text nor its former texts."""
        author = Author.of_id(comment.author_id, accounts, base_url=base_url)
        latest = CommentVersion(
            raw=HIDDEN_TEXT if comment.hidden else comment.raw,
            html=_render_html(HIDDEN_TEXT if comment.hidden else comment.raw),
            updatedAt=comment.edited_at or comment.created_at,
            author=author,
        )
        data = CommentData(
            edited=comment.edited_at is not None,
            hidden=comment.hidden,
            hiddenBy=_name_of(comment.hidden_by, accounts),
            latest=latest,
            parentCommentId=comment.parent_id or MISSING,
            history=_history(comment, versions, accounts, base_url=base_url),
            reactions=[ReactionCount.of(each) for each in emoji],
        )
        return cls(id=comment.id, createdAt=comment.created_at, author=author, data=data)


class WriteComment(Schema):
    comment: CommentText


class EditComment(Schema):
    content: CommentText


class NewComment(Schema):
    newMessage: CommentEvent


class UpdatedComment(Schema):
    updatedComment: CommentEvent


def author_ids(comments: Sequence[Comment]) -> set[str | None]:
    """Return the ids of the accounts that the rendered comments show."""
    return {person for each in comments for person in (each.author_id, each.hidden_by)}


def _history(
    comment: Comment,
    versions: Sequence[CommentRevision] | None,
    accounts: Accounts,
    *,
    base_url: str,
) -> Any:
    if versions is None:
        return MISSING
    return [
        CommentVersion(
            raw=version.raw,
            html=_render_html(version.raw),
            updatedAt=version.written_at,
            author=Author.of_id(version.author_id, accounts, base_url=base_url),
        )
        for version in (() if comment.hidden else versions)
    ]


def _render_html(raw: str) -> str:
    paragraphs = [part.strip("\n") for part in raw.split("\n\n")]
    escaped = [escape(part).replace("\n", "<br>\n") for part in paragraphs if part.strip()]
    return "\n".join(f"<p>{part}</p>" for part in escaped)


def _name_of(account_id: str | None, accounts: Accounts) -> str | MISSING:
    account = accounts.get(account_id) if account_id else None
    return account.name if account else MISSING


class Muted(Schema):
    """Whether the caller hears nothing more of the thread."""

    muted: bool
