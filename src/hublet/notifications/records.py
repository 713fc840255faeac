"""Records of notifications: an item of an inbox, and a message of the hub."""

from datetime import datetime
from enum import IntEnum

from hublet.core.dataclasses import dataclass

# Rung when an inbox changed.
INBOXES_CHANNEL = "inboxes"

# The author of the hub's own messages, and their place: they are posts of the hub.
HUB = "hublet"

PAPER = "paper"
POST = "post"
BLOG = "blog"


class Involvement(IntEnum):
    """How a user has to do with a thread; the higher one includes the lower."""

    watched = 0
    # Opened it, commented, or changed its state.
    participating = 1
    # Was mentioned in it, once: that sticks.
    mentioned = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxItem:
    """What happened, as an inbox keeps it."""

    # The id of the thread, or of a message of the hub.
    thread_id: str
    # The type of the repository of a discussion; paper, post or blog.
    type: str
    # The repository of a discussion, the owner of a post.
    place_id: str | None
    # The comment or change that it leads to.
    event_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageText:
    """What the hub has to say: plain text, in which names that users chose are nothing more."""

    # For programs, as in `webhook-suspended`.
    kind: str
    title: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HubMessage:
    """A text that one user was told."""

    id: str
    user_id: str
    text: MessageText
    created_at: datetime
