"""Records of an access: its origin, its holder, the tokens issued from it, and why it ended."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from hublet.core.dataclasses import dataclass
from hublet.oauth.records import Access
from hublet.tokens.records import Scope


class EndReason(StrEnum):
    # The person ended it.
    owner = "owner"
    app_deleted = "app-deleted"
    # A code, a device code or a refresh token was used a second time.
    reuse = "reuse"
    # The app gave it back.
    revoked = "revoked"
    # A credential of it was presented to the public revoke call.
    reported = "reported"
    # A condition of it is gone: the app's privilege, its organization or the plan.
    lapsed = "lapsed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Session, address and program from which a person allowed an access."""

    session_id: str | None = None
    authenticated_at: datetime | None = None
    address: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The person behind a permission, as of now: not disabled, and still a member there."""

    user_id: str
    user_name: str
    # Names by id, of those organizations that the permission selects.
    organizations: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedTokens:
    """Values that are sent to an app and never shown again."""

    access_token: str
    expires_in: int
    scopes: frozenset[Scope]
    refresh_token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshToken:
    token_id: str
    generation: int
    replaced_at: datetime | None
    # The response when it was replaced; see `hublet.oauth.access.issuance`.
    sealed_answer: bytes | None
    # Neither revoked nor expired, of an access that has not ended, and its user not disabled.
    is_alive: bool
    created_at: datetime
    expires_at: datetime
    user_name: str
    access: Access
