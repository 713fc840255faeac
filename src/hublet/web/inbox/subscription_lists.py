"""Lists of what somebody watches or muted: searched by name, by type, page by page."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from hublet.core.dataclasses import dataclass
from hublet.notifications.records import MuteType, SubscriptionEntry, WatchType

PAGE_SIZE = 50
_TITLES = {
    WatchType.repo: "Repositories",
    WatchType.user: "People",
    WatchType.org: "Organizations",
    MuteType.thread: "Threads",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionList:
    """A page of what is watched or muted: those whose names have a text, by their types."""

    path: str
    search: str
    page: int
    total: int
    groups: Mapping[str, Sequence[SubscriptionEntry]]
    matching: int

    @property
    def newer(self) -> str | None:
        return self.address(self.page - 1) if self.page else None

    @property
    def older(self) -> str | None:
        return self.address(self.page + 1) if (self.page + 1) * PAGE_SIZE < self.matching else None

    def address(self, page: int) -> str:
        asked = {"q": self.search, "p": page}
        found = urlencode({name: value for name, value in asked.items() if value})
        return f"{self.path}?{found}" if found else self.path


def list_of(
    entries: Sequence[SubscriptionEntry], path: str, *, search: str, page: int
) -> SubscriptionList:
    text = search.casefold()
    matching = [each for each in entries if text in each.name.casefold()]
    order = list(_TITLES)
    matching.sort(key=lambda each: (order.index(_kind(each)), each.name.casefold()))
    groups: dict[str, list[SubscriptionEntry]] = {}
    for each in matching[page * PAGE_SIZE : (page + 1) * PAGE_SIZE]:
        groups.setdefault(_TITLES[_kind(each)], []).append(each)
    return SubscriptionList(
        path=path,
        search=search,
        page=page,
        total=len(entries),
        groups=groups,
        matching=len(matching),
    )


def _kind(entry: SubscriptionEntry) -> WatchType | MuteType:
    return MuteType.thread if entry.type == MuteType.thread else WatchType(entry.type)
