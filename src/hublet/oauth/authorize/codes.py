"""Authorization codes: issued to a browser, redeemed by an app once, and bound to it by PKCE (RFC
7636, S256 only).
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256
from hmac import compare_digest

from hublet.core.clock import now, to_micros
from hublet.core.database import Connection
from hublet.core.ids import random_bytes
from hublet.oauth.authorize import store
from hublet.oauth.authorize.records import AuthorizationCode, NewAuthorizationCode

CODE_LIFE = timedelta(seconds=60)
# A used code that comes again ends the access that it gave, for as long as it is stored.
STORED_AFTER_EXPIRY = timedelta(days=1)

_DIGEST = "oauth-code"
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


async def issue(conn: Connection, code: NewAuthorizationCode) -> str:
    """Issue a code; return its value, of which only a digest is stored."""
    await store.remove_expired_codes(conn, before=to_micros(now() - STORED_AFTER_EXPIRY))
    value = "ac_" + urlsafe_b64encode(random_bytes(32)).rstrip(b"=").decode()
    digest = conn.hub.keys.digest(_DIGEST, value).hex()
    await store.add_code(conn, code, digest=digest, expires_at=to_micros(now() + CODE_LIFE))
    return value


async def lock(conn: Connection, values: Sequence[str]) -> list[AuthorizationCode | None]:
    """Return the codes of these values, also those that were used or have expired.

    Nobody else uses one before the transaction ends.
    """
    digests = [[each.hex() for each in conn.hub.keys.digests(_DIGEST, value)] for value in values]
    found = await store.lock_codes(conn, [one for each in digests for one in each])
    return [next((found[one] for one in each if one in found), None) for each in digests]


async def use(conn: Connection, uses: Sequence[tuple[AuthorizationCode, str | None]]) -> None:
    """Mark locked codes as used, each by an access (its id) or by none."""
    await store.use_codes(conn, [(code.digest, access_id) for code, access_id in uses])


def is_verifier(text: str) -> bool:
    return _VERIFIER.fullmatch(text) is not None


def is_challenge(text: str) -> bool:
    """Tell whether this can be the SHA-256 of a verifier in base64url."""
    return _CHALLENGE.fullmatch(text) is not None


def challenge_of(verifier: str) -> str:
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def verifier_matches(verifier: str, challenge: str) -> bool:
    return is_verifier(verifier) and compare_digest(challenge_of(verifier), challenge)
