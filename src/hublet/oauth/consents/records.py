"""What a person agreed to, and the question that leads there."""

from datetime import datetime

from hublet.accounts.records import Organization
from hublet.core.light_dataclasses import dataclass
from hublet.oauth.records import App
from hublet.tokens.records import Scope, with_included


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    user_id: str
    app_id: str
    scopes: frozenset[Scope]
    organization_ids: frozenset[str]
    # The app's revision then.
    revision: int
    given_at: datetime

    def covers(self, app: App, scopes: frozenset[Scope], organization_ids: frozenset[str]) -> bool:
        return (
            self.revision == app.revision
            and scopes <= with_included(self.scopes)
            and organization_ids <= self.organization_ids
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleConsent:
    """What is remembered although the app has no access now: it would not be asked about."""

    app_id: str
    app_name: str
    given_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An organization that a person may let an app reach."""

    organization: Organization
    chosen: bool
    # Whether the app asks for it and did not have it before.
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the consent page shows."""

    app: App
    # The host of its document or site, and who registered it, if anybody did.
    host: str | None
    owner_name: str | None
    # Nobody but the app itself vouches for its name and picture.
    is_unverified: bool
    # Every answer goes to whatever program listens on the person's own machine.
    is_local: bool
    new_scopes: tuple[Scope, ...]
    known_scopes: tuple[Scope, ...]
    reaches_inbox: bool
    choices: tuple[Choice, ...]
    # Organizations that the app asked for and this person does not belong to, or nobody.
    left_out: int = 0
