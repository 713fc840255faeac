"""Records of an access: its origin, its holder, the tokens issued from it, and how it ends."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from hublet.core.light_dataclasses import dataclass
from hublet.oauth.records import Access
from hublet.tokens.records import Scope


class EndReason(StrEnum):
    # The person ended it.
    owner = "owner"
    app_deleted = "app-deleted"
    # Somebody came with a code, a device code or a refresh token that was used before.
    reuse = "reuse"
    # The app gave it back.
    revoked = "revoked"
    # A credential of it was presented to the public revoke call.
    reported = "reported"
    # What it rested on is gone: the app's privilege, its organization or the plan.
    lapsed = "lapsed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """From where and with what a person allowed it."""

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
    """The values that an app is told, this once."""

    access_token: str
    expires_in: int
    scopes: frozenset[Scope]
    refresh_token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshToken:
    token_id: str
    generation: int
    replaced_at: datetime | None
    # The answer that was given then; see `hublet.oauth.access.refresh_tokens`.
    sealed_answer: bytes | None
    # Neither revoked nor expired, nor part of an access that ended, and its user not disabled.
    is_alive: bool
    created_at: datetime
    expires_at: datetime
    user_name: str
    access: Access
