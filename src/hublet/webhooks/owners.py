"""Whose webhooks a request is about."""

from hublet.accounts.records import Actor
from hublet.core.light_dataclasses import dataclass
from hublet.tokens.records import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A user, or an organization for whom one of its administrators acts."""

    id: str
    name: str
    is_organization: bool = False
    caller: Caller
    actor: Actor
