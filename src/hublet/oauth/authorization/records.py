"""An authorization request that passed all checks."""

from enum import StrEnum

from hublet.core.light_dataclasses import dataclass
from hublet.oauth.authorization.targets import Target
from hublet.oauth.records import App
from hublet.tokens.records import Scope


class Prompt(StrEnum):
    none = "none"
    login = "login"
    consent = "consent"
    select_account = "select_account"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    app: App
    target: Target
    scopes: frozenset[Scope]
    challenge: str | None = None
    nonce: str | None = None
    prompts: frozenset[Prompt] = frozenset()
    # Seconds since the person last showed who they are.
    max_age: int | None = None
    # Seconds since the epoch: who was sent to the login because of this request came back.
    signed_in_after: int | None = None
    # Those that the app asks for; the person chooses.
    organization_ids: frozenset[str] = frozenset()
