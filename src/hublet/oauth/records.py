"""Records of OAuth: an app, what a person allows it (permission), a permission in use (access),
and where a response to an authorization request goes.
"""

from datetime import datetime
from enum import StrEnum

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
