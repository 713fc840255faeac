"""Scopes as OAuth requests name them: words with spaces between them."""

import re
from collections.abc import Iterable

from hublet.oauth.errors import invalid_scope
from hublet.oauth.records import App, AppKind
from hublet.tokens.records import ALL_SCOPES, Scope, with_included

# RFC 6749, 3.3.
_WORDS = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*")
# Refresh tokens come anyway, so this scope of OpenID Connect asks for nothing.
_OFFLINE = "offline_access"


# What an app that nobody registered gets when it does not say what it wants.
_AT_FIRST = frozenset({Scope.openid, Scope.profile})
_REGISTERED = frozenset({AppKind.registered, AppKind.first_party})


def scopes_asked_by(app: App, text: str | None) -> frozenset[Scope]:
    """Return what an app asks a person for; without a word, all that it was registered with.

    An app that registered itself may ask for nearly everything, but must say so.
    """
    default = app.scopes if app.kind in _REGISTERED else app.scopes & _AT_FIRST
    return requested_scopes(text, allowed=app.scopes, default=default)


def requested_scopes(
    text: str | None, *, allowed: frozenset[Scope], default: frozenset[Scope] | None = None
) -> frozenset[Scope]:
    """Return what is asked for; the default, else all that is allowed, when nothing is.

    What an allowed scope includes may be asked for alone: that is less, never more.
    """
    if text and _WORDS.fullmatch(text) is None:
        raise invalid_scope("scope must be names of scopes with one space between two.")
    names = set(text.split(" ") if text else ()) - {_OFFLINE}
    if not names:
        return allowed if default is None else default
    if not names <= ALL_SCOPES:
        raise invalid_scope("scope has a name that is no scope of this hub.")
    scopes = frozenset(map(Scope, names))
    if missing := scopes - with_included(allowed):
        raise invalid_scope(f"scope: {written(missing)} goes beyond what the app may have.")
    return scopes


def written(scopes: Iterable[Scope]) -> str:
    """Write scopes as answers show them, in the order of interface 5.3."""
    given = frozenset(scopes)
    return " ".join(scope for scope in Scope if scope in given)
