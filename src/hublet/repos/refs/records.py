"""What a ref is."""

from typing import Any

from hublet.core.light_dataclasses import dataclass
from hublet.events import UpdatedRef
from hublet.repos.blobs.records import Blob

MAIN = "refs/heads/main"
HEADS = "refs/heads/"
TAGS = "refs/tags/"
PULL_REQUESTS = "refs/pr/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    # As git spells it: refs/heads/main.
    name: str
    sha: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBranch:
    name: str
    # A branch, a tag or a commit; None: main.
    starting_point: str | None = None
    # Begin with a commit that holds nothing.
    is_empty: bool = False
    # Move the branch when there is one of this name.
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The metadata at the top of README.md, and the tags that follow from it."""

    data: dict[str, Any] | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Refs that move together, all or none, and what else changes with them."""

    updates: tuple[UpdatedRef, ...]
    actor_id: str
    # The card of the commit that main moves to; None when main stays.
    card: Card | None = None
    # How much the repository's storage grows.
    added_bytes: int = 0
    # What these refs brought into the folder of blobs.
    blobs: tuple[Blob, ...] = ()
