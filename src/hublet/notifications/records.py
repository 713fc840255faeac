"""Records of notifications: items of an inbox, messages of the hub, watches and mutes."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Self

from hublet.core.dataclasses import dataclass

# The channel that is woken when an inbox changes.
INBOXES_CHANNEL = "inboxes"
# The author of the hub's own messages, and their place: they are posts of the hub.
HUB = "hublet"
PAPER = "paper"
POST = "post"
BLOG = "blog"
# A time after everything.
END_OF_TIME = 2**62


class Involvement(IntEnum):
    """How a user is involved in a thread; the higher one includes the lower."""

    watched = 0
    # Opened it, commented, or changed its state.
    participating = 1
    # Was mentioned in it, once for all.
    mentioned = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxItem:
    """An item as it is put into inboxes."""

    # The id of the thread, or of a message of the hub.
    thread_id: str
    # The type of the repository of a discussion; paper, post or blog.
    type: str
    # The repository of a discussion, the owner of a post.
    place_id: str | None
    # The comment or change that it leads to.
    event_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A selection of items, which have all of this in common; None stands for any."""

    type: str | None = None
    places: frozenset[str] | None = None
    threads: frozenset[str] | None = None
    # The user's involvement in the thread, at least or exactly.
    least: Involvement = Involvement.watched
    exactly: bool = False
    unread: bool = False
    # No item that is newer, in microseconds.
    until: int = END_OF_TIME
    # Nothing of these organizations, by id: the credential does not reach them.
    except_owners: frozenset[str] = frozenset()
    # The filters contradict each other, or have a name that nobody has.
    empty: bool = False

    def of_type(self, type: str) -> Self:  # noqa: A002 - the word of the interface
        return replace(self, type=type, empty=self.empty or self.type not in {None, type})

    def in_places(self, places: Iterable[str]) -> Self:
        found = frozenset(places) if self.places is None else self.places.intersection(places)
        return replace(self, places=found, empty=self.empty or not found)

    def of_threads(self, threads: Iterable[str]) -> Self:
        found = frozenset(threads) if self.threads is None else self.threads.intersection(threads)
        return replace(self, threads=found, empty=self.empty or not found)


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxEntry:
    """An item as it is in one inbox."""

    thread_id: str
    place_id: str | None
    read: bool
    updated_at: int
    event_id: str | None
    involvement: Involvement = Involvement.watched
    last_event_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxPage:
    """A page of a selection, newest first, and its counts, read items included."""

    entries: list[InboxEntry]
    total: int
    unread: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxSummary:
    """An inbox at a glance: its version, and how much is in it."""

    version: int = 0
    # The time of the newest item that ever came.
    last_at: int = 0
    total: int = 0
    unread: int = 0
    # Of the unread ones, those in which the user takes part, and was mentioned.
    participating: int = 0
    mentioned: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxChange:
    """A change of one inbox that can be undone, and how much it changed."""

    id: str
    user_id: str
    read: bool
    last_at: int
    marked: int = 0
    muted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LastEvent:
    """What happened last in a thread: `comment` or the type of a change, and who did it."""

    type: str
    author: str
    # Of a change of the status, the new one.
    status: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageText:
    """Text of a message of the hub: plain text, also where it contains names that users chose."""

    # For programs, as in `webhook-suspended`.
    kind: str
    title: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HubMessage:
    """A message of the hub to one user."""

    id: str
    user_id: str
    text: MessageText
    created_at: datetime


class WatchType(StrEnum):
    org = "org"
    user = "user"
    repo = "repo"


class MuteType(StrEnum):
    """A muted repository still lets mentions and participation through, a muted thread nothing."""

    repo = "repo"
    thread = "thread"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionTarget:
    """An account, repository or thread that a user watches or mutes."""

    type: WatchType | MuteType
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionEntry:
    """One entry of the list of what a user watches, or muted."""

    id: str
    type: str
    # Of an account its name, of a repository owner/name, of a thread its title.
    name: str
    repo_type: str | None = None
    thread_kind: str | None = None
    # The path of its page.
    page: str = ""
