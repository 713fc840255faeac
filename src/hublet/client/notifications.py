"""Client of the notifications API: the inbox, watches, mutes and settings."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

from hublet.client.errors import ClientError, Refused
from hublet.client.events import Event, follow
from hublet.client.hub import Hub, Query, path_of

_INBOX = "/api/notifications"
_NOT_FOUND = 404
_OVERVIEW_PATHS = {
    "user": "/api/users/{name}/overview",
    "org": "/api/organizations/{name}/overview",
}

# An item as the hub sends it: one of four forms, named by `type`.
Notification = dict[str, Any]


class InboxCount(TypedDict):
    view: int
    unread: int
    all: int


class InboxPage(TypedDict):
    notifications: list[Notification]
    count: InboxCount
    start: int


class WatchEntry(TypedDict):
    """Something that is watched or muted."""

    id: str
    type: Literal["org", "user", "repo", "thread"]
    name: str
    repoType: NotRequired[str]
    kind: NotRequired[str]


class WatchTarget(TypedDict):
    id: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    hub: Hub

    def page(self, query: Query) -> InboxPage:
        page: InboxPage = self.hub.get(_INBOX, query)
        return page

    def mark(self, ids: Sequence[str], *, read: bool, query: Query) -> int:
        """Return how many items changed."""
        body: dict[str, object] = {"read": read}
        if ids:
            body["discussionIds"] = list(ids)
        count: int = self.hub.post(f"{_INBOX}/mark-as-read", body, query=query)["count"]
        return count

    def delete(self, ids: Sequence[str], *, query: Query) -> int:
        """Return how many items were deleted."""
        body = {"discussionIds": list(ids)} if ids else None
        count: int = self.hub.delete(_INBOX, body, query=query)["count"]
        return count

    def follow(
        self, *, on_connect: Callable[[], None], on_disconnect: Callable[[str], None]
    ) -> Iterator[Event]:
        """Yield an event for each item that comes or changes, for ever."""
        return follow(
            self.hub, f"{_INBOX}/stream", on_connect=on_connect, on_disconnect=on_disconnect
        )

    def entries(self, verb: Literal["watch", "mute"]) -> list[WatchEntry]:
        return _entries(self.hub.get(f"/api/settings/{verb}"))

    def change(
        self,
        verb: Literal["watch", "mute"],
        *,
        add: Sequence[WatchTarget] = (),
        delete: Sequence[WatchTarget] = (),
    ) -> list[WatchEntry]:
        """Add and remove watches or mutes; return all that remain."""
        body = {"add": list(add), "delete": list(delete)}
        return _entries(self.hub.patch(f"/api/settings/{verb}", body))

    def target(self, kind: str, name: str) -> WatchTarget:
        """Return the target of a watch: a user, an organization or a repository by its id."""
        if kind in _OVERVIEW_PATHS:
            return {
                "id": self.hub.get(path_of(_OVERVIEW_PATHS[kind], name=name))["_id"],
                "type": kind,
            }
        return {"id": self._repo_id(kind, name), "type": "repo"}

    def _repo_id(self, kind: str, full_name: str) -> str:
        owner, _, name = full_name.partition("/")
        try:
            repo = self.hub.get(path_of(f"/api/{kind}s/{{owner}}/{{name}}", owner=owner, name=name))
        except Refused as error:
            if error.status != _NOT_FOUND:
                raise
            raise ClientError(
                f"There is no {kind} {full_name}, or you cannot see it. If it is private, check that "
                "your token may read it."
            ) from None
        repo_id: str = repo["_id"]
        return repo_id

    def owner_target(self, name: str) -> WatchTarget:
        """Return the target of a watch: the user or the organization of this name."""
        for kind in _OVERVIEW_PATHS:
            try:
                return self.target(kind, name)
            except Refused as error:
                if error.status != _NOT_FOUND:
                    raise
        raise ClientError(f"There is no user and no organization {name}.")

    def settings(self) -> dict[str, bool | str]:
        settings: dict[str, bool | str] = self.hub.get("/api/settings/notifications")[
            "notifications"
        ]
        return settings

    def set(self, choices: Mapping[str, bool | str]) -> dict[str, bool | str]:
        """Change some settings; return all of them."""
        response = self.hub.patch("/api/settings/notifications", {"notifications": dict(choices)})
        settings: dict[str, bool | str] = response["notifications"]
        return settings


def _entries(response: Mapping[str, list[WatchEntry]]) -> list[WatchEntry]:
    [entries] = response.values()
    return entries
