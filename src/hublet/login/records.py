"""Records of the login: a session, a visitor, a passkey."""

from dataclasses import field
from datetime import datetime

from hublet.accounts.records import OrganizationLimit, User
from hublet.core.dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A browser in which a person is signed in."""

    id: str
    user_id: str
    user_name: str
    # Whether the person is an administrator of the hub.
    is_admin: bool = False
    created_at: datetime
    # When the person last signed in with a password or a passkey.
    authenticated_at: datetime
    last_used_at: datetime
    expires_at: datetime
    # Address and browser, by which its owner recognizes it.
    address: str | None = None
    agent: str | None = None
    # Organizations of the person that are reached from their own networks alone.
    limits: tuple[OrganizationLimit, ...] = ()
    # Digest of the cookie's value; the forms of the session are bound to it.
    digest: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Address and browser of a request, signed in or not."""

    address: str
    agent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The user that a login attempt names."""

    user: User
    password_hash: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passkey:
    id: str
    # As the browser names it, in base64url.
    credential_id: str
    user_id: str
    name: str
    public_key: bytes = field(repr=False)
    sign_count: int
    created_at: datetime
    last_used_at: datetime | None = None
