"""Where the answer to an authorization request goes."""

import re

from hublet.core.light_dataclasses import dataclass

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where an answer goes, now that it is proven to be the app's."""

    redirect_uri: str
    state: str | None = None


def forms_lead_to(redirect_uri: str) -> str:
    """Return the source of a policy that lets an answer reach the app.

    Chromium holds a form to the policy of its page through every redirect that follows, also
    those that the app makes after the first. So it is the scheme that is allowed, not one host:
    an app may well go on from its callback to another host of its own.
    """
    scheme = _SCHEME.match(redirect_uri)
    if scheme is None:
        return ""
    return "http: https:" if scheme[1] == "http" else f"{scheme[1]}:"
