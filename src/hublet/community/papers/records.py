"""Records of papers."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from hublet.community.threads.records import Thread
from hublet.core.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRecord:
    """A thread about what was published elsewhere: nobody here is its author."""

    thread: Thread
    # Who brought it here.
    submitter_id: str
    published_at: datetime
    submitted_at: datetime
    upvotes: int = 0

    @property
    def id(self) -> str:
        """The id in its address: arXiv's, or one of its own."""
        return self.thread.paper_id or ""

    @property
    def summary(self) -> str:
        return self.thread.body or ""

    @property
    def authors(self) -> list[str]:
        details: dict[str, Any] = self.thread.details or {}
        return list(details.get("authors", []))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPaper:
    """What somebody tells of a paper: the hub asks no other service about it."""

    id: str
    title: str
    summary: str
    authors: tuple[str, ...]
    # When it was submitted here, without one.
    published_at: datetime | None = None
    # The name of the submitter, when that is not the caller.
    submitted_by: str | None = None


class PaperSort(StrEnum):
    """How the daily papers are ordered; the values are the client's words."""

    newest = "publishedAt"
    trending = "trending"


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyPapersQuery:
    """Which of the submitted papers to show."""

    span: tuple[datetime, datetime] | None = None
    # Empty for everybody's.
    submitter: str = ""
    sort: PaperSort = PaperSort.newest
    page: int = 0
    limit: int
