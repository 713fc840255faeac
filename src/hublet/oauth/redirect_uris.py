"""Redirect URIs: which ones an app may register, when a requested one matches, and where a
response goes.

Everything is decided on the text as it was sent. A lenient parser would read some of it in another
way than the browser that follows it does.
"""

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote_plus

from hublet.oauth.errors import RedirectUriRefused
from hublet.oauth.records import OAuthApp

MAX_REDIRECT_URI = 2000

# Interface 5.2, each in this one spelling.
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
# What the response to an authorization request adds; a second one would be read by mistake.
RESERVED_PARAMETERS = frozenset(
    {
        "access_token",
        "code",
        "error",
        "error_description",
        "error_uri",
        "id_token",
        "iss",
        "response",
        "session_state",
        "state",
    }
)
# A browser runs these, or shows what lies on the person's machine.
_REFUSED_SCHEMES = frozenset(
    {
        "about",
        "blob",
        "chrome",
        "content",
        "data",
        "file",
        "filesystem",
        "ftp",
        "intent",
        "jar",
        "javascript",
        "mailto",
        "vbscript",
        "view-source",
        "ws",
        "wss",
    }
)

_LARGEST_PORT = 65535
_MAX_QUOTED_PART = 120

# RFC 3986, appendix B: it takes any text apart and leaves nothing out.
_PARTS = re.compile(
    r"(?:(?P<scheme>[^:/?#]+):)?(?://(?P<authority>[^/?#]*))?(?P<path>[^?#]*)"
    r"(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?",
    re.DOTALL,
)
_CHARACTERS = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()+,;=-]|%[0-9A-Fa-f]{2})+")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_USERINFO = r"(?:(?P<userinfo>(?:[A-Za-z0-9._~!$&'()+,;=:-]|%[0-9A-Fa-f]{2})*)@)?"
_PORT = r"(?::(?P<port>[1-9][0-9]{0,4}))?"
_LABEL = r"[A-Za-z0-9_-]+"
_AUTHORITY = re.compile(rf"{_USERINFO}(?P<host>(?:{_LABEL}\.)*{_LABEL}|\[[0-9A-Fa-f:.]+\]){_PORT}")
_LEADING_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):")
_LOOPBACK = re.compile(
    rf"http://{_USERINFO}(?P<host>localhost|127\.0\.0\.1|\[::1\]){_PORT}(?P<rest>[/?#].*)?",
    re.DOTALL,
)


def matches(registered: str, requested: str, *, dynamic_query: bool = False) -> bool:
    """Tell whether a requested URI is this registered one.

    Interface 5.2: the texts are equal, or both are http on the same loopback host and differ in
    nothing but the port. An app may opt in to any query after a URI that is registered without.
    """
    if dynamic_query and "?" not in registered:
        bare, _, query = requested.partition("?")
        return _is_safe_query(query) and matches(registered, bare)
    if registered == requested:
        return True
    known = _without_loopback_port(registered)
    return known is not None and known == _without_loopback_port(requested)


def _is_safe_query(query: str) -> bool:
    if query and not _CHARACTERS.fullmatch(query):
        return False
    return "#" not in query and _reserved_in(query) is None


def _without_loopback_port(uri: str) -> tuple[str | None, str, str | None] | None:
    """Return all of an http URI on a loopback host but its port; None for any other."""
    parts = _LOOPBACK.fullmatch(uri)
    if parts is None or int(parts["port"] or 1) > _LARGEST_PORT:
        return None
    return parts["userinfo"], parts["host"], parts["rest"]


def check_registrable(uri: str, *, field: str = "redirectUris") -> None:
    """Refuse a URI that no app may register, with the rule that it breaks."""
    rule = _broken_rule(uri)
    if rule is not None:
        raise RedirectUriRefused(rule, field=field)


def _broken_rule(uri: str) -> str | None:
    if not 1 <= len(uri) <= MAX_REDIRECT_URI:
        return f"a redirect URI has 1 to {MAX_REDIRECT_URI} characters."
    if "*" in uri:
        return "a redirect URI is taken as it is, and * stands for nothing in it."
    if not _CHARACTERS.fullmatch(uri):
        return "a redirect URI has only the characters of RFC 3986; all others are percent-encoded."
    parts = _split(uri)
    if parts["fragment"] is not None:
        return "a redirect URI has no fragment (#)."
    if reserved := _reserved_in(parts["query"] or ""):
        return f"the query of a redirect URI must not have {reserved}: the answer adds it."
    return _broken_authority_rule(parts)


def _broken_authority_rule(parts: Mapping[str, str | None]) -> str | None:
    scheme, authority = parts["scheme"], parts["authority"]
    if scheme is None or not _SCHEME.fullmatch(scheme):
        return "a redirect URI begins with a scheme in lower case, as in https://example.com/cb."
    if scheme in _REFUSED_SCHEMES:
        return f"the scheme {scheme} leads to no app."
    if scheme not in {"http", "https"}:
        return _broken_private_scheme_rule(parts)
    where = _AUTHORITY.fullmatch(authority or "")
    if where is None or int(where["port"] or 1) > _LARGEST_PORT:
        return "a redirect URI needs a host name, and its port is a number from 1 to 65535."
    if scheme == "http" and where["host"] not in LOOPBACK_HOSTS:
        return "http is only for localhost, 127.0.0.1 and [::1]; other hosts need https."
    return None


def _broken_private_scheme_rule(parts: Mapping[str, str | None]) -> str | None:
    if parts["authority"] is None and not (parts["path"] or "").startswith("/"):
        # `localhost:3000/cb` is meant to be something else.
        return "after the scheme of an app comes :/ or ://, as in com.example.app:/cb."
    return None


def _split(uri: str) -> dict[str, str | None]:
    parts = _PARTS.fullmatch(uri)
    if parts is None:
        raise AssertionError("Every text can be taken apart.")
    return parts.groupdict()


def _reserved_in(query: str) -> str | None:
    names = (unquote_plus(each.partition("=")[0]) for each in query.split("&"))
    return next((name for name in names if name in RESERVED_PARAMETERS), None)


def is_loopback(uri: str) -> bool:
    """Tell whether a URI leads to a program on the person's own machine."""
    return _without_loopback_port(uri) is not None


def host_of(uri: str) -> str:
    """Return the host that a URI leads to, or `myapp:` where an app on the machine opens it."""
    parts = _split(uri)
    if parts["scheme"] not in {"http", "https"}:
        return f"{parts['scheme']}:"
    where = _AUTHORITY.fullmatch(parts["authority"] or "")
    return where["host"].lower() if where else ""


def redirect_hosts(app: OAuthApp) -> set[str]:
    """Return the hosts of an app's redirect URIs: people judge the app by them."""
    return set(map(host_of, app.redirect_uris))


def with_parameters(uri: str, parameters: Mapping[str, str]) -> str:
    """Return the URI with these parameters added; every character that it has stays."""
    joint = "&" if "?" in uri else "?"
    added = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())
    return f"{uri}{joint}{added}"


def describe_difference(registered: str, requested: str) -> str:
    """Say in one sentence where a requested URI leaves the registered one."""
    if not requested.isprintable() or not requested.isascii():
        return "The requested redirect URI has a character that no URI may have."
    requested_parts = _named_parts(requested)
    for name, known in _named_parts(registered).items():
        if known != requested_parts[name]:
            was = _abbreviate(requested_parts[name])
            return f"The {name} differs: {_abbreviate(known)} is registered, {was} was asked for."
    return "The requested redirect URI is written in another way than the registered one."


def _named_parts(uri: str) -> dict[str, str | None]:
    parts = _split(uri)
    authority = parts["authority"] or ""
    user, at, address = authority.rpartition("@")
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, colon, port = address, "", ""
    return {
        "scheme": parts["scheme"],
        "user name": user if at else None,
        "host": host,
        "path": parts["path"],
        "query": parts["query"],
        "fragment": parts["fragment"],
        "port": port if colon else None,
    }


def _abbreviate(part: str | None) -> str:
    if not part:
        return "none" if part is None else "an empty one"
    return part if len(part) <= _MAX_QUOTED_PART else f"{part[:_MAX_QUOTED_PART]}…"


def form_action_source(redirect_uri: str) -> str:
    """Return the source for `form-action` that lets the response reach the app.

    Chromium holds a form to the policy of its page through every redirect that follows, also
    those that the app makes after the first. So it is the scheme that is allowed, not one host:
    an app may well go on from its callback to another host of its own.
    """
    scheme = _LEADING_SCHEME.match(redirect_uri)
    if scheme is None:
        return ""
    return "http: https:" if scheme[1] == "http" else f"{scheme[1]}:"
