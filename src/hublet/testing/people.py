"""Who is on a test's hub: users, organizations, apps."""

from dataclasses import field

from hublet.core.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    name: str
    email: str
    # Of the role "write": it may do all that its owner may.
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    name: str
    plan: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthApp:
    client_id: str
    secret: str = field(repr=False)
