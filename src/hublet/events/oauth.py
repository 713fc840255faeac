"""Facts about what apps may do for people."""

from hublet.core.light_dataclasses import dataclass
from hublet.core.outbox import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessEnded(Event):
    """An app's access to an account was ended by the hub; its owner is to be told.

    `reason` is `reuse`: somebody came with a code or a refresh token that was used before, so
    it may have been stolen.
    """

    kind = "access.ended"
    user_id: str
    app_id: str
    app_name: str
    reason: str
