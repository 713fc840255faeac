"""What a refresh token is beside a credential."""

from datetime import datetime

from hublet.core.light_dataclasses import dataclass
from hublet.oauth.records import Access


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    token_id: str
    generation: int
    replaced_at: datetime | None
    # The answer that was given then; see `hublet.oauth.access.refreshes.answers`.
    sealed_answer: bytes | None
    # Neither revoked nor expired, nor part of an access that ended, and its user not disabled.
    is_alive: bool
    created_at: datetime
    expires_at: datetime
    user_name: str
    access: Access
