"""Records of threads, comments and participants."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from hublet.accounts.records import Account
from hublet.core.dataclasses import dataclass


class ThreadKind(StrEnum):
    discussion = "discussion"
    paper = "paper"
    post = "post"
    blog = "blog"


class ThreadStatus(StrEnum):
    draft = "draft"
    open = "open"
    closed = "closed"
    merged = "merged"


class Emoji(StrEnum):
    """The emoji with which users react to comments, by the names of the public description."""

    fire = "fire"
    rocket = "rocket"
    eyes = "eyes"
    heart = "heart"
    hugs = "hugs"
    cool = "cool"
    plus = "plus"
    brain = "brain"
    thumbsup = "thumbsup"
    handshake = "handshake"
    sad = "sad"
    mindblown = "mindblown"


class Participation(StrEnum):
    """How a user takes part in a thread."""

    opened = "opened"
    commented = "commented"
    # Changed its title or state, or pushed to its pull request.
    changed = "changed"
    mentioned = "mentioned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    id: str
    kind: ThreadKind
    title: str
    author_id: str | None = None
    # The account that owns a post or blog.
    owner_id: str | None = None
    repo_id: str | None = None
    number: int | None = None
    is_pull_request: bool = False
    status: ThreadStatus | None = None
    pinned: bool = False
    # The branch that a pull request is to be merged into, as in refs/heads/main.
    base: str | None = None
    merge_commit_id: str | None = None
    paper_id: str | None = None
    slug: str | None = None
    # The text of a post or blog, the summary of a paper.
    body: str | None = None
    details: dict[str, Any] | None = None
    comment_count: int = 0
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    id: str
    thread_id: str
    author_id: str
    parent_id: str | None = None
    raw: str
    hidden: bool = False
    hidden_by: str | None = None
    created_at: datetime
    edited_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentEmoji:
    """An emoji with which a user reacted to a comment."""

    id: str
    comment_id: str
    user_id: str
    reaction: Emoji
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EmojiCount:
    """How many users reacted with an emoji, and the names of the first of them."""

    reaction: Emoji
    count: int
    users: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadEmoji:
    """The emoji on all comments of a thread, and how many users gave them."""

    counts: tuple[EmojiCount, ...] = ()
    user_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentRevision:
    """The text of a comment before it was edited."""

    author_id: str
    raw: str
    written_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadChange:
    """An entry of a thread's history that is no comment: status-change, title-change, commit, …"""

    id: str
    thread_id: str
    type: str
    author_id: str
    data: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    user_id: str
    parts: frozenset[Participation]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadEntries:
    """All that was written and changed in a thread, oldest first."""

    comments: list[Comment]
    # The former texts of comments, by comment.
    revisions: dict[str, list[CommentRevision]]
    changes: list[ThreadChange]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicThreadRights:
    """What a caller may do with a paper, post or blog; every service checks it again."""

    # React and mute it.
    may_discuss: bool = False
    # Comment, answer, and edit or hide one's own comments.
    may_comment: bool = False
    # Hide comments of others.
    may_write: bool = False
    may_edit: bool = False
    may_delete: bool = False


# The accounts that a response shows, by id; one that is missing here is left out.
Accounts = Mapping[str, Account]
