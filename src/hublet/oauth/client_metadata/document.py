"""Client ID metadata document: which addresses may be a client id, what a document must say, and how long a
copy of it serves; and the fields that a document and a registration have alike (RFC 7591, 2).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any

from hublet.core.dataclasses import dataclass
from hublet.oauth.apps.records import clean_name
from hublet.oauth.errors import DocumentRefused, InvalidMetadata, RedirectUriRefused
from hublet.oauth.records import OAuthApp
from hublet.oauth.redirect_uris import check_registrable, is_loopback
from hublet.tokens.records import ALL_SCOPES, Scope

_DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
# In the order in which responses list them; the last one comes with each of the others.
GRANT_TYPES = ("authorization_code", _DEVICE, "refresh_token")
# Members of a JSON Web Key that only its owner may know.
_PRIVATE_KEY_MEMBERS = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}


def parse_object(body: bytes, *, what: str) -> dict[str, Any]:
    """Parse a JSON object without duplicate names: of two values, parsers differ in which they take."""
    try:
        stated = json.loads(
            body.decode(), object_pairs_hook=_reject_duplicates, parse_constant=_reject_constant
        )
    except (ValueError, RecursionError):
        raise InvalidMetadata(f"The {what} must be JSON, with each name once.") from None
    if not isinstance(stated, dict):
        raise InvalidMetadata(f"The {what} must be a JSON object.")
    return stated


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("A name stands there twice.")
    return members


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON.")


def client_name_in(stated: Mapping[str, Any]) -> str:
    name = stated.get("client_name")
    if not isinstance(name, str):
        raise InvalidMetadata("client_name must be a text.")
    try:
        return clean_name(name)
    except ValueError as error:
        raise InvalidMetadata(f"client_name: {error}.") from None


def check_grants(stated: Mapping[str, Any]) -> None:
    """Refuse metadata without any grant or response type of the hub's; others are ignored."""
    begins = {"authorization_code", _DEVICE}
    if "grant_types" in stated and not begins & set(strings_in(stated, "grant_types")):
        raise InvalidMetadata("grant_types must have authorization_code or the device code.")
    if "response_types" in stated and "code" not in strings_in(stated, "response_types"):
        raise InvalidMetadata("response_types must have code.")


def check_no_private_keys(stated: Mapping[str, Any]) -> None:
    jwks = stated.get("jwks")
    keys = jwks.get("keys") if isinstance(jwks, dict) else None
    if isinstance(keys, list) and any(
        isinstance(key, dict) and _PRIVATE_KEY_MEMBERS & set(key) for key in keys
    ):
        raise InvalidMetadata("jwks must have no private key.")


def scopes_in(stated: Mapping[str, Any]) -> frozenset[Scope]:
    """Return the scopes that an app may ask for: those it states, or all when it states none."""
    scope = stated.get("scope")
    if scope is None:
        return ALL_SCOPES
    if not isinstance(scope, str):
        raise InvalidMetadata("scope must be a text with blanks between the scopes.")
    known = frozenset(Scope(name) for name in scope.split() if name in ALL_SCOPES)
    return known or ALL_SCOPES


def strings_in(stated: Mapping[str, Any], field: str) -> list[str]:
    value = stated.get(field)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidMetadata(f"{field} must be a list of texts.")
    return value


MAX_ADDRESS_LENGTH = 500
MAX_REDIRECT_URIS = 100
# How long a copy that is not fresh serves token requests while the site is out of reach.
STALE_LIFE = timedelta(hours=24)

_LARGEST_PORT = 65535
_HTTPS_PORT = 443
# Ports below it belong to services of the machine that are not meant for this.
_FIRST_FREE_PORT = 1024
_CHARACTERS = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+")
_ADDRESS = re.compile(
    r"(?P<origin>(?P<scheme>https?)://"
    r"(?:(?:[A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[1-9][0-9]{0,4}))?)"
    r"(?P<path>/[^?#]*)?(?:\?[^#]*)?"
)
_DOT = r"(?:\.|%2[eE])"
_DOT_SEGMENT = re.compile(rf"/{_DOT}{{1,2}}(?:/|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedDocument:
    """A document as the site sent it."""

    body: bytes = field(repr=False)
    fetched_at: datetime
    fresh_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDocument:
    """A document that passed all checks."""

    name: str
    redirect_uris: tuple[str, ...]
    scopes: frozenset[Scope]
    client_uri: str | None
    logo_uri: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedDocument:
    """The app of a document as it was stored when the document was fetched last."""

    app: OAuthApp
    fresh_until: datetime
    # Where the document said that its logo is.
    logo_uri: str | None

    def is_usable(self, now: datetime, *, may_be_stale: bool) -> bool:
        tolerance = STALE_LIFE if may_be_stale else timedelta()
        return now < self.fresh_until + tolerance


def broken_client_id_rule(client_id: str, *, issuer: str) -> str | None:
    """Return the rule that an address breaks, or None when it may be a client id."""
    if objection := broken_link_rule(client_id, issuer=issuer):
        return objection
    path = _parts(client_id)["path"] or "/"
    if path == "/":
        return "A client id that is an address needs a path, as in /.well-known/oauth-cimd."
    if _DOT_SEGMENT.search(path):
        return "A client id that is an address has no . and .. in its path."
    return None


def broken_link_rule(address: str, *, issuer: str) -> str | None:
    """Return the rule that an address breaks, or None when the hub may fetch from it."""
    if len(address) > MAX_ADDRESS_LENGTH:
        return f"An address has at most {MAX_ADDRESS_LENGTH} characters."
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


def read_document(client_id: str, body: bytes, *, issuer: str) -> ClientDocument:
    """Parse and check the document at the address that is the client id."""
    try:
        stated = parse_object(body, what="document")
        # Byte for byte: otherwise a site could speak for another one.
        if stated.get("client_id") != client_id:
            raise DocumentRefused("client_id must be the address of the document itself.")
        _check_public(stated)
        check_grants(stated)
        check_no_private_keys(stated)
        return ClientDocument(
            name=client_name_in(stated),
            redirect_uris=_redirect_uris(stated),
            scopes=scopes_in(stated),
            client_uri=_client_uri(stated, client_id, issuer=issuer),
            logo_uri=_link(stated, "logo_uri", issuer=issuer),
        )
    except InvalidMetadata as error:
        raise DocumentRefused(error.reason) from None


def _check_public(stated: Mapping[str, Any]) -> None:
    for name in ("client_secret", "client_secret_expires_at"):
        if name in stated:
            raise DocumentRefused(f"{name}: everybody can read it here, so there is none.")
    methods = stated.get("token_endpoint_auth_methods_supported")
    if isinstance(methods, list) and "none" in methods:
        return
    if stated.get("token_endpoint_auth_method", "none") != "none":
        raise DocumentRefused("token_endpoint_auth_method must be none.")


def _redirect_uris(stated: Mapping[str, Any]) -> tuple[str, ...]:
    uris = strings_in(stated, "redirect_uris")
    if not uris or len(uris) > MAX_REDIRECT_URIS:
        raise DocumentRefused(f"redirect_uris must list 1 to {MAX_REDIRECT_URIS} URIs.")
    for index, uri in enumerate(uris):
        try:
            check_registrable(uri, field=f"redirect_uris[{index}]")
        except RedirectUriRefused as refusal:
            raise DocumentRefused(refusal.message) from None
    return tuple(dict.fromkeys(uris))


def _client_uri(stated: Mapping[str, Any], client_id: str, *, issuer: str) -> str | None:
    """Return the app's page; one of another site says nothing about who is behind the app."""
    uri = _link(stated, "client_uri", issuer=issuer)
    return uri if uri is not None and origin_of(uri) == origin_of(client_id) else None


def _link(stated: Mapping[str, Any], name: str, *, issuer: str) -> str | None:
    """Return a link; one that cannot be fetched is left out, it is no reason to refuse an app."""
    uri = stated.get(name)
    if not isinstance(uri, str) or broken_link_rule(uri, issuer=issuer):
        return None
    return uri
