"""Browsers: names and rules of cookies, safe redirect paths, and readable names of user agents."""

import re
from typing import Literal, TypedDict

from hublet.core.config import Settings

SESSION_COOKIE = "hublet_session"
CHALLENGE_COOKIE = "hublet_challenge"
START_PATH = "/settings/sessions"

# An authorization request comes back from the login with its state, of 8 KiB before encoding.
_MAX_PATH_LENGTH = 40_000
# Browsers take a backslash for a slash and drop control characters, so `/\host` and `/<tab>/host`
# lead to other hosts just as `//host` does. What is not printable ASCII has to be %-encoded.
_PATH = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")

# The first match counts: most browsers also name the ones that they imitate.
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


class CookieRules(TypedDict):
    path: str
    secure: bool
    httponly: bool
    samesite: Literal["lax"]


def cookie_name(settings: Settings, name: str) -> str:
    # With this prefix browsers accept the cookie only over TLS, and from no neighbour domain.
    return f"__Host-{name}" if _is_https(settings) else name


def cookie_rules(settings: Settings) -> CookieRules:
    # Lax: a link of an app to the consent page carries the cookie.
    return {"path": "/", "secure": _is_https(settings), "httponly": True, "samesite": "lax"}


def _is_https(settings: Settings) -> bool:
    return settings.base_url.startswith("https://")


def safe_path(requested: str | None) -> str:
    """Return the requested path and query if it is one of this hub, else the start page."""
    if requested is None or len(requested) > _MAX_PATH_LENGTH or not _PATH.fullmatch(requested):
        return START_PATH
    return requested


def browser_of(agent: str | None) -> str:
    """Return a name such as `Firefox on Linux`; for other programs, the beginning of the header."""
    if agent is None:
        return "Unknown browser"
    browser = next((name for sign, name in _BROWSERS if sign in agent), None)
    system = next((name for sign, name in _SYSTEMS if sign in agent), None)
    if browser is None:
        return agent[:_MAX_AGENT_LENGTH]
    return f"{browser} on {system}" if system else browser
