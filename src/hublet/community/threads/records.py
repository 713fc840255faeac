"""Records of threads, comments, participants and the accounts they show."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from hublet.core.light_dataclasses import dataclass


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


class Participation(StrEnum):
    """How somebody has to do with a thread."""

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
    # The account under whose name a post or blog stands.
    owner_id: str | None = None
    repo_id: str | None = None
    number: int | None = None
    is_pull_request: bool = False
    status: ThreadStatus | None = None
    pinned: bool = False
    # The branch a pull request wants to change, as in refs/heads/main.
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
class CommentRevision:
    """What a comment said before it was edited."""

    author_id: str
    raw: str
    written_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadChange:
    """What happened in a thread beside comments: status-change, title-change, commit, …"""

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
class Account:
    """A user or an organization; one that is disabled still shows its name."""

    id: str
    name: str
    fullname: str
    # One of user, service-account and org.
    type: str


# By id, as many as one answer needs; an id that is not in it cannot be shown.
Accounts = Mapping[str, Account]
