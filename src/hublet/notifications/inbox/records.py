"""Records of the inbox: a selection of items, an entry, a page."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Self

from hublet.core.dataclasses import dataclass
from hublet.notifications.records import Involvement

# A time that nothing comes after.
END_OF_TIME = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Items that have all of this in common; None stands for any."""

    type: str | None = None
    places: frozenset[str] | None = None
    threads: frozenset[str] | None = None
    # How much the user has to do with the thread, at least or exactly.
    least: Involvement = Involvement.watched
    exactly: bool = False
    unread: bool = False
    # No item that is newer, in microseconds.
    until: int = END_OF_TIME
    # What was asked for contradicts itself, or has a name that nobody has.
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
    """An item as the inbox keeps it."""

    thread_id: str
    place_id: str | None
    read: bool
    updated_at: int
    event_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxPage:
    """A page of what is selected, newest first, and how much there is whether read or not."""

    entries: list[InboxEntry]
    total: int
    unread: int
