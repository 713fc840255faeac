"""The cookies of the login: what they are called and how browsers keep them."""

from typing import Literal, TypedDict

from hublet.core.config import Settings

SESSION = "hublet_session"
CHALLENGE = "hublet_challenge"


class CookieRules(TypedDict):
    path: str
    secure: bool
    httponly: bool
    samesite: Literal["lax"]


def cookie_name(settings: Settings, name: str) -> str:
    # With this prefix browsers take the cookie only over TLS, and from no neighbour domain.
    return f"__Host-{name}" if _is_https(settings) else name


def cookie_rules(settings: Settings) -> CookieRules:
    # Lax: who follows a link of an app to the consent page is still signed in there.
    return {"path": "/", "secure": _is_https(settings), "httponly": True, "samesite": "lax"}


def _is_https(settings: Settings) -> bool:
    return settings.base_url.startswith("https://")
