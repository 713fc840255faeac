"""Records of papers."""

import hashlib
import re
from datetime import datetime
from enum import StrEnum
from typing import Any

from hublet.community.threads.records import Thread
from hublet.core.dataclasses import dataclass

ARXIV_ID = re.compile(r"[0-9]{4}\.[0-9]{4,5}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperLinks:
    """Where more of a paper is: its own site, its code, and the organization behind it."""

    project_page: str | None = None
    github_repo: str | None = None
    organization_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRecord:
    """A paper that was published elsewhere, with its thread, which has no author here."""

    thread: Thread
    # The user who submitted it to this hub.
    submitter_id: str
    published_at: datetime
    submitted_at: datetime
    upvotes: int = 0

    @property
    def id(self) -> str:
        """The id in its address: arXiv's, or one of its own."""
        return self.thread.paper_id or ""

    @property
    def is_on_arxiv(self) -> bool:
        return ARXIV_ID.fullmatch(self.id) is not None

    @property
    def summary(self) -> str:
        return self.thread.body or ""

    @property
    def authors(self) -> list[str]:
        return list(self._details.get("authors", []))

    @property
    def author_ids(self) -> list[str]:
        """The id of each author, in their order: a claim names it."""
        return [
            hashlib.sha256(f"{self.thread.id} {number}".encode()).hexdigest()[:24]
            for number, _ in enumerate(self.authors)
        ]

    @property
    def claims(self) -> dict[str, str]:
        """The users who are authors of it, by the id of the author."""
        return dict(self._details.get("claims", {}))

    @property
    def links(self) -> PaperLinks:
        return PaperLinks(**self._details.get("links", {}))

    @property
    def _details(self) -> dict[str, Any]:
        return self.thread.details or {}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPaper:
    """What a submitter says of a paper; the hub asks no other service about it."""

    id: str
    title: str
    summary: str
    authors: tuple[str, ...]
    # The time of the submission counts without one.
    published_at: datetime | None = None
    # The name of the submitter, when that is not the caller.
    submitted_by: str | None = None


class PaperSort(StrEnum):
    """How the daily papers are ordered; the values are the client's words."""

    newest = "publishedAt"
    trending = "trending"


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyPapersQuery:
    """Filter and order of the daily papers."""

    span: tuple[datetime, datetime] | None = None
    # The name of a user; empty matches every submitter.
    submitter: str = ""
    sort: PaperSort = PaperSort.newest
    page: int = 0
    limit: int
