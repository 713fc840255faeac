"""Browsers: the cookies they keep, the paths they may be sent to, and their names in words."""

import re
from typing import Literal, TypedDict

from hublet.core.config import Settings

SESSION_COOKIE = "hublet_session"
CHALLENGE_COOKIE = "hublet_challenge"


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


START_PATH = "/settings/sessions"

# An authorization request comes back from the login with its state, of 8 KiB before encoding.
_MAX_PATH_LENGTH = 40_000
# Browsers take a backslash for a slash and drop control characters, so `/\host` and `/<tab>/host`
# lead to other hosts just as `//host` does. What is not printable ASCII has to be %-encoded.
_PATH = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")


def safe_path(asked: str | None) -> str:
    """Return the path and query that was asked for if it is one of this hub, else the start."""
    if asked is None or len(asked) > _MAX_PATH_LENGTH or _PATH.fullmatch(asked) is None:
        return START_PATH
    return asked


# The first that is found counts: most browsers also name those they once wanted to be taken for.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)
_MAX_AGENT_LENGTH = 60


def browser_of(agent: str | None) -> str:
    """Return such as `Firefox on Linux`; of what is no browser, what it says of itself."""
    if agent is None:
        return "Unknown browser"
    browser = next((name for sign, name in _BROWSERS if sign in agent), None)
    system = next((name for sign, name in _SYSTEMS if sign in agent), None)
    if browser is None:
        return agent[:_MAX_AGENT_LENGTH]
    return f"{browser} on {system}" if system else browser
