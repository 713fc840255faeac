"""What an authorization code stands for."""

from datetime import datetime

from hublet.core.light_dataclasses import dataclass
from hublet.oauth.records import Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCode:
    permission: Permission
    # Byte for byte as the authorization request had it.
    redirect_uri: str
    challenge: str | None = None
    nonce: str | None = None
    session_id: str | None = None
    # When the person last showed who they are.
    authenticated_at: datetime
    # From where and with what the person agreed.
    address: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    digest: str
    content: NewCode
    expires_at: datetime
    used_at: datetime | None = None
    # What it gave when it was used.
    access_id: str | None = None
