"""Records of watches and mutes."""

from enum import StrEnum

from hublet.core.dataclasses import dataclass


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
    """What a user names to watch or to mute it."""

    type: WatchType | MuteType
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionEntry:
    """One line of what a user watches, or of what a user muted."""

    id: str
    type: str
    # Of an account its name, of a repository owner/name, of a thread its title.
    name: str
    repo_type: str | None = None
    thread_kind: str | None = None
