"""Records of mail: a queued mail, and its recipient."""

from datetime import datetime
from enum import StrEnum

from hublet.core.dataclasses import dataclass
from hublet.notifications.preferences.switches import PreferenceKey


class MailKind(StrEnum):
    thread = "thread"
    message = "message"
    digest = "digest"
    # New tags of a repository.
    tags = "tags"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedMail:
    """A mail to one user, about one thread, message, repository or day."""

    id: str
    user_id: str
    kind: MailKind
    # The id of the thread, message or repository, or the day.
    about: str
    # None for what cannot be turned off.
    key: PreferenceKey | None
    # The events, oldest first: ids, or the names of tags. The id of a thread that has no first
    # comment stands for its opening.
    events: tuple[str, ...] = ()
    # Whether it is in the inbox as well: what was read there is not mailed.
    in_inbox: bool = False
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MailRecipient:
    """A user who has a verified primary address."""

    user_id: str
    name: str
    fullname: str
    address: str
    disabled: bool
