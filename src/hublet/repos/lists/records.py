"""Which repositories are asked for, and in which order."""

from enum import StrEnum

from hublet.core.light_dataclasses import dataclass
from hublet.repos.records import RepoType


class Sort(StrEnum):
    """What a list is sorted by; the value is the column."""

    creation = "created_at"
    update = "updated_at"
    likes = "likes"
    downloads = "downloads"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoFilter:
    """Which repositories are asked for; what is empty lets everything through."""

    type: RepoType
    # The name of a user or an organization.
    author: str = ""
    # Each must be a part of owner/name.
    words: tuple[str, ...] = ()
    # Must be a part of the name alone.
    name_part: str = ""
    # Each must be among the tags, in any case.
    tags: tuple[str, ...] = ()
    gated: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    sort: Sort = Sort.creation
    ascending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a page ended: the value it is sorted by, and the id of its last repository."""

    value: int
    repo_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPosition:
    """Where a page of an owner's list ended: at a type, and there at a moment and an id."""

    # Empty at the start, which is before everything.
    type: str = ""
    value: int = 0
    repo_id: str = ""
