"""Issuers of ID tokens: their keys by discovery (OpenID Connect Discovery 1.0), cached, and the check of a
signature.

Only issuers that the operator named are ever called, through the guarded client.
"""

import asyncio
import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from hublet.core.clock import monotonic
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.logs import get_logger
from hublet.core.outgoing import OutgoingClient, OutgoingRequest

DISCOVERY_PATH = "/.well-known/openid-configuration"
MAX_DOCUMENT_BYTES = 65_536
MAX_KEYS = 100
DEADLINE_SECONDS = 5.0
# An unknown key is looked for this often, whoever sends tokens that name one.
REFETCH_SECONDS = 60.0
# Keys that an issuer withdrew are forgotten after this long.
FRESH_SECONDS = 3600.0

_KEY_TYPES = {"RS256": "RSA", "ES256": "EC"}
_CURVE = "P-256"
_MIN_RSA_BITS = 2048
_OK = 200

log = get_logger("oauth")


class IssuerUnusable(Exception):
    """Control flow: the documents of an issuer cannot be used; the sentence is for the log."""


class InvalidIdToken(Exception):
    """Control flow: a token is not accepted; `reason` is for logs, never for who sent it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class _CachedKeys:
    by_id: dict[str, Any] = field(default_factory=dict)
    fetched_at: float | None = None
    tried_at: float | None = None
    # One request at a time asks the issuer; the others wait for what it finds.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def is_due(self, key_id: str) -> bool:
        at = monotonic()
        if self.tried_at is not None and at - self.tried_at < REFETCH_SECONDS:
            return False
        is_old = self.fetched_at is None or at - self.fetched_at >= FRESH_SECONDS
        return is_old or key_id not in self.by_id


class IssuerKeys:
    """Public keys of issuers by their ids, in the memory of this process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._issuers: dict[str, _CachedKeys] = {}

    async def find(self, issuer: str, key_id: str) -> Any | None:
        """Return a key of an issuer; what is not known is fetched, at most once a minute.

        On any error, and when an issuer publishes no key at all, the keys that are known stay.
        """
        cached = self._issuers.setdefault(issuer, _CachedKeys())
        async with cached.lock:
            if cached.is_due(key_id):
                cached.tried_at = monotonic()
                try:
                    cached.by_id = await _fetch_keys(self._settings, issuer)
                    cached.fetched_at = monotonic()
                except IssuerUnusable as error:
                    log.warning("keys of an issuer not fetched", issuer=issuer, reason=str(error))
        return cached.by_id.get(key_id)


# What a process fetched belongs to the hub that it serves; tests have several in one process.
_keys: WeakKeyDictionary[Database, IssuerKeys] = WeakKeyDictionary()


def keys_of(database: Database) -> IssuerKeys:
    return _keys.setdefault(database, IssuerKeys(database.hub.settings))


async def _fetch_keys(settings: Settings, issuer: str) -> dict[str, Any]:
    async with OutgoingClient(settings) as client:
        configuration = await _get(client, issuer.removesuffix("/") + DISCOVERY_PATH)
        if configuration.get("issuer") != issuer:
            raise IssuerUnusable("Its configuration names another issuer.")
        address = configuration.get("jwks_uri")
        if not isinstance(address, str) or not _is_as_safe(address, issuer):
            raise IssuerUnusable("Its configuration has no jwks_uri that begins with https://.")
        found = (await _get(client, address)).get("keys")
    keys = _read_keys(found if isinstance(found, list) else [])
    if not keys:
        raise IssuerUnusable("It publishes no key for RS256 or ES256.")
    return keys


def _is_as_safe(address: str, issuer: str) -> bool:
    # An issuer without TLS is one on this machine, by the rule of the setting.
    return address.startswith("https://") or issuer.startswith("http://")


async def _get(client: OutgoingClient, url: str) -> dict[str, Any]:
    response = await client.send(
        OutgoingRequest(
            method="GET",
            url=url,
            headers={"Accept": "application/json"},
            deadline_seconds=DEADLINE_SECONDS,
            # One byte more shows that the body is too large.
            keep_bytes=MAX_DOCUMENT_BYTES + 1,
            read_bytes=MAX_DOCUMENT_BYTES + 1,
        )
    )
    if response.reason is not None:
        raise IssuerUnusable(response.detail)
    # Redirects too: they are not followed.
    if response.status != _OK:
        raise IssuerUnusable(f"It responded with {response.status}.")
    if len(response.body) > MAX_DOCUMENT_BYTES:
        raise IssuerUnusable(f"A document has more than {MAX_DOCUMENT_BYTES} bytes.")
    try:
        document = json.loads(response.body)
    except (ValueError, RecursionError):
        raise IssuerUnusable("A document is not JSON.") from None
    if not isinstance(document, dict):
        raise IssuerUnusable("A document is not a JSON object.")
    return document


def _read_keys(found: list[Any]) -> dict[str, Any]:
    """Read those keys that check a signature here; the others of a set are left out."""
    keys: dict[str, Any] = {}
    for each in found[:MAX_KEYS]:
        if isinstance(each, dict) and isinstance(each.get("kid"), str):
            key = _read_key(each)
            if key is not None:
                keys[each["kid"]] = key
    return keys


def _read_key(jwk: Mapping[str, Any]) -> Any | None:
    from joserfc.errors import JoseError  # noqa: PLC0415 - loaded by those who need it
    from joserfc.jwk import ECKey, RSAKey  # noqa: PLC0415 - as above

    fits = "alg" not in jwk or _KEY_TYPES.get(str(jwk["alg"])) == jwk.get("kty")
    if jwk.get("use", "sig") != "sig" or not fits:
        return None
    public = {
        name: value for name, value in jwk.items() if name in {"kty", "n", "e", "crv", "x", "y"}
    }
    try:
        if jwk.get("kty") == "RSA":
            rsa = RSAKey.import_key(public)
            return rsa if rsa.public_key.key_size >= _MIN_RSA_BITS else None
        if jwk.get("kty") == "EC" and jwk.get("crv") == _CURVE:
            return ECKey.import_key(public)
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    return None


def read_unverified(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and claims of a token that nobody has checked: only to find who issued it."""
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004 - RFC 7515: header, payload, signature
        raise InvalidIdToken("not a signed JWT")
    try:
        header, claims = (json.loads(_decode(part)) for part in parts[:2])
    except (ValueError, RecursionError):
        raise InvalidIdToken("not a signed JWT") from None
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise InvalidIdToken("not a signed JWT")
    return header, claims


def _decode(part: str) -> bytes:
    return urlsafe_b64decode(part.encode("ascii") + b"=" * (-len(part) % 4))


def check_header(header: Mapping[str, Any]) -> str:
    """Return the id of the key; which algorithm fits it is decided by the key, not by the header.

    `jku`, `x5u` and `jwk` would let a token bring its own key: they are never read.
    """
    if header.get("alg") not in _KEY_TYPES:
        raise InvalidIdToken("alg")
    if "crit" in header:
        raise InvalidIdToken("crit")
    key_id = header.get("kid")
    if not isinstance(key_id, str) or not key_id:
        raise InvalidIdToken("kid")
    return key_id


def check_signature(token: str, header: Mapping[str, Any], key: Any) -> dict[str, Any]:
    """Return the claims of a token that this key signed."""
    from joserfc import jws  # noqa: PLC0415 - as above
    from joserfc.errors import JoseError  # noqa: PLC0415 - as above

    algorithm = header["alg"]
    if key.key_type != _KEY_TYPES[algorithm]:
        raise InvalidIdToken("alg")
    registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    try:
        signed = jws.deserialize_compact(token, key, algorithms=[algorithm], registry=registry)
        claims = json.loads(signed.payload)
    except (JoseError, ValueError, TypeError, RecursionError):
        raise InvalidIdToken("signature") from None
    return claims if isinstance(claims, dict) else {}
