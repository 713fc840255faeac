"""Records of OAuth: an app, what a person allows it (permission), a permission in use (access), where a
response to an authorization request goes, a device login, and a signing key.
"""

from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any

from hublet.accounts.records import OrganizationPlan
from hublet.core.dataclasses import dataclass
from hublet.tokens.records import Scope

# The public command line's own client id: it signs people in by device code.
COMMAND_LINE_CLIENT_ID = "26be6b09-91c5-47da-9861-d2d2bb7a7e36"
# How long the access tokens of an app live unless it was given another time.
TOKEN_SECONDS = 8 * 3600
# Interface 5.4: how long a token from a token exchange lives unless the organization says otherwise.
DEFAULT_EXCHANGE_SECONDS = 8 * 3600


class AppKind(StrEnum):
    # By a user, in the settings.
    registered = "registered"
    # By itself, through /oauth/register.
    dynamic = "dynamic"
    # A client ID metadata document; its client id is the address of the document.
    document = "document"
    # Part of every hub: the public command line.
    first_party = "first-party"


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthApp:
    id: str
    client_id: str
    kind: AppKind
    owner_id: str | None = None
    # The organization that it is bound to.
    organization_id: str | None = None
    name: str
    client_uri: str | None = None
    logo_uri: str | None = None
    redirect_uris: tuple[str, ...] = ()
    scopes: frozenset[Scope] = frozenset()
    dynamic_query: bool = False
    token_exchange: bool = False
    token_seconds: int
    revision: int = 1
    # Whether it has a secret; without one it is public.
    confidential: bool = False
    created_at: datetime
    updated_at: datetime


class Via(StrEnum):
    """How a person came to allow it."""

    code = "code"
    device = "device"
    exchange = "exchange"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What a person allows an app: scopes, for their own things and for these organizations'."""

    user_id: str
    app_id: str
    scopes: frozenset[Scope]
    organization_ids: frozenset[str] = frozenset()
    # The part of the hub that it is for, as in `TokenRecord`.
    resource: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A permission in use: everything that was issued from it ends with it."""

    id: str
    permission: Permission
    via: Via
    session_id: str | None = None
    authenticated_at: datetime | None = None
    address: str | None = None
    agent: str | None = None
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RedirectTarget:
    """Where the response to an authorization request goes; proven to be the app's."""

    redirect_uri: str
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A key that signs ID tokens."""

    # The thumbprint of the public key (RFC 7638).
    id: str
    sealed_private: bytes = field(repr=False)
    # As a JWK, with its use and algorithm.
    public: dict[str, Any]
    created_at: datetime
    # Published from its creation on, so that clients know it when it begins to sign.
    signs_from: datetime


class DeviceState(StrEnum):
    pending = "pending"
    approved = "approved"
    denied = "denied"
    consumed = "consumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    digest: str
    app_id: str
    scopes: frozenset[Scope]
    state: DeviceState
    # Seconds between two polls; grows with each one that comes too early.
    interval: int
    # Address and program of the device, for the person who decides.
    address: str | None = None
    agent: str | None = None
    # Who decided, and when they last signed in.
    user_id: str | None = None
    organization_ids: frozenset[str] = frozenset()
    authenticated_at: datetime | None = None
    created_at: datetime
    expires_at: datetime
    # The access that it gave when it was used.
    access_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedDevice:
    """The two codes of a request, which are not stored: one for the app, one for the person."""

    device_code: str
    # As people read it, `WDJB-MJHT`.
    user_code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeTerms:
    """Terms of token exchange of the organization that an app is bound to."""

    organization_id: str
    organization_name: str
    plan: OrganizationPlan
    # How long a token lives.
    seconds: int
