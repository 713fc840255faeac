"""Which addresses may be a client id, decided on the text as it was sent."""

import re

from hublet.oauth.redirect_uris import is_loopback

MAX_ADDRESS = 500

_LARGEST_PORT = 65535
_HTTPS_PORT = 443
# Below it lie services of the machine that are not meant for this.
_FIRST_FREE_PORT = 1024
_CHARACTERS = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+")
_ADDRESS = re.compile(
    r"(?P<origin>(?P<scheme>https?)://"
    r"(?:(?:[A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[1-9][0-9]{0,4}))?)"
    r"(?P<path>/[^?#]*)?(?:\?[^#]*)?"
)
_DOT = r"(?:\.|%2[eE])"
_DOT_SEGMENT = re.compile(rf"/{_DOT}{{1,2}}(?:/|$)")


def objection_to(client_id: str, *, issuer: str) -> str | None:
    """Return the rule that an address breaks, or None when a document may lie there."""
    if objection := objection_to_link(client_id, issuer=issuer):
        return objection
    path = _parts(client_id)["path"] or "/"
    if path == "/":
        return "A client id that is an address needs a path, as in /.well-known/oauth-cimd."
    if _DOT_SEGMENT.search(path):
        return "A client id that is an address has no . and .. in its path."
    return None


def objection_to_link(address: str, *, issuer: str) -> str | None:
    """Return the rule that any address breaks which the hub is asked to fetch from."""
    if len(address) > MAX_ADDRESS:
        return f"An address has at most {MAX_ADDRESS} characters."
    if not _CHARACTERS.fullmatch(address) or "#" in address:
        return "An address has only the characters of RFC 3986, and no fragment (#)."
    parts = _ADDRESS.fullmatch(address)
    if parts is None:
        return "An address begins with https:// and a host, without a user name."
    if parts["scheme"] == "http" and not (is_loopback(address) and is_loopback(issuer)):
        return "An address begins with https://."
    port = int(parts["port"] or _HTTPS_PORT)
    if port > _LARGEST_PORT or not (port == _HTTPS_PORT or port >= _FIRST_FREE_PORT):
        return "The port of an address is 443, or 1024 and above."
    return None


def origin_of(address: str) -> str:
    """Return the scheme, host and port of an address that has passed."""
    return _parts(address)["origin"] or ""


def _parts(address: str) -> dict[str, str | None]:
    parts = _ADDRESS.fullmatch(address)
    return {"origin": None, "path": None} if parts is None else parts.groupdict()
