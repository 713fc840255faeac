"""Records of an authorization: the checked request, the consent and its question, the code, and
the access as the person who gave it sees it.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from hublet.accounts.records import Organization
from hublet.core.dataclasses import dataclass
from hublet.oauth.records import Access, OAuthApp, Permission, RedirectTarget
from hublet.tokens.records import Scope, with_included


class Prompt(StrEnum):
    none = "none"
    login = "login"
    consent = "consent"
    select_account = "select_account"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    app: OAuthApp
    target: RedirectTarget
    scopes: frozenset[Scope]
    challenge: str | None = None
    nonce: str | None = None
    prompts: frozenset[Prompt] = frozenset()
    # Seconds since the last login of the person.
    max_age: int | None = None
    # Seconds since the epoch: a login after this time satisfies the request.
    signed_in_after: int | None = None
    # Those that the app asks for; the person chooses.
    organization_ids: frozenset[str] = frozenset()
    # The part of the hub that the token is to be for, as in `TokenRecord`.
    resource: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAuthorizationCode:
    permission: Permission
    # Byte for byte as the authorization request had it.
    redirect_uri: str
    challenge: str | None = None
    nonce: str | None = None
    session_id: str | None = None
    # When the person last signed in.
    authenticated_at: datetime
    # Address and browser from which the person agreed.
    address: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationCode:
    digest: str
    content: NewAuthorizationCode
    expires_at: datetime
    used_at: datetime | None = None
    # The access that it gave when it was used.
    access_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    user_id: str
    app_id: str
    scopes: frozenset[Scope]
    organization_ids: frozenset[str]
    # The app's revision then.
    revision: int
    given_at: datetime

    def covers(
        self, app: OAuthApp, scopes: frozenset[Scope], organization_ids: frozenset[str]
    ) -> bool:
        return (
            self.revision == app.revision
            and scopes <= with_included(self.scopes)
            and organization_ids <= self.organization_ids
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleConsent:
    """A consent whose app has no access now: if the app came back, nobody would be asked."""

    app_id: str
    app_name: str
    given_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationChoice:
    """An organization that a person may let an app reach."""

    organization: Organization
    chosen: bool
    # Whether the app asks for it and did not have it before.
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentQuestion:
    """What the consent page shows."""

    app: OAuthApp
    # The host of its document or site, and who registered it, if anybody did.
    host: str | None
    owner_name: str | None
    # Name and picture are the app's own claim.
    is_unverified: bool
    # Every response goes to a program on the person's own machine.
    is_local: bool
    new_scopes: tuple[Scope, ...]
    known_scopes: tuple[Scope, ...]
    reaches_inbox: bool
    choices: tuple[OrganizationChoice, ...]
    # How many requested organizations this person does not belong to, or do not exist.
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AppSummary:
    id: str
    client_id: str
    name: str
    has_logo: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedAccess:
    access: Access
    app: AppSummary
    # Names by id, of those that still exist.
    organizations: Mapping[str, str]
