"""Fields of client metadata, in a document or a registration (RFC 7591, 2)."""

import json
from collections.abc import Mapping
from typing import Any

from hublet.oauth.apps.records import clean_name
from hublet.oauth.errors import InvalidMetadata
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
