"""What a message of the hub is."""

from datetime import datetime

from hublet.core.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """What the hub has to say: plain text, in which names that users chose are nothing more."""

    # For programs, as in `webhook-suspended`.
    kind: str
    title: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A text that one user was told."""

    id: str
    user_id: str
    text: Text
    created_at: datetime
