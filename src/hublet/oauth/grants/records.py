"""A request to the token endpoint, and what comes of it."""

from collections.abc import Collection, Mapping
from datetime import datetime

from hublet.accounts.records import Plan
from hublet.core.light_dataclasses import dataclass
from hublet.oauth.access.records import Issued
from hublet.oauth.clients import Presented
from hublet.oauth.errors import invalid_request, invalid_target
from hublet.oauth.records import App
from hublet.tokens.records import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    parameters: Mapping[str, str]
    presented: Presented
    address: str
    agent: str | None = None

    def find(self, name: str) -> str | None:
        return self.parameters.get(name)

    def get(self, name: str) -> str:
        if name not in self.parameters:
            raise invalid_request(f"{name} is required.")
        return self.parameters[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is issued, and what an ID token beside it would tell."""

    app: App
    user_id: str
    issued: Issued
    organization_ids: Collection[str] = ()
    nonce: str | None = None
    authenticated_at: datetime | None = None
    session_id: str | None = None
    # Scopes that an ID token does not speak of.
    untold: frozenset[Scope] = frozenset()
    # RFC 8693 wants it told; other grants have no such field.
    issued_token_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeTerms:
    """What an organization that an app is bound to says about token exchange."""

    organization_id: str
    organization_name: str
    plan: Plan
    # How long a token lives.
    seconds: int


def check_target(request: TokenRequest, *, base_url: str) -> None:
    """Refuse a token for somebody else (RFC 8707): what we issue is for this hub only."""
    for name in ("resource", "audience"):
        for target in (request.find(name) or "").split():
            if target != base_url and not target.startswith(f"{base_url}/"):
                raise invalid_target(f"{name} must be an address of this hub.")
