"""Authorization codes: issued to a browser, redeemed by an app once, and bound to it by PKCE (RFC
7636, S256 only).
"""

import re
from base64 import urlsafe_b64encode
from datetime import timedelta
from hashlib import sha256
from hmac import compare_digest

from hublet.core.clock import now, to_micros
from hublet.core.database import Connection, Reader
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


async def find(conn: Reader, value: str) -> AuthorizationCode | None:
    """Return the code of this value, also when it was used or has expired."""
    return await store.find_code(
        conn, [each.hex() for each in conn.hub.keys.digests(_DIGEST, value)]
    )


async def use(conn: Connection, code: AuthorizationCode, *, access_id: str | None) -> bool:
    """Mark a code as used, by this access or by none; False when another request was faster."""
    return await store.use_code(conn, code.digest, access_id=access_id)


async def reload(conn: Reader, code: AuthorizationCode) -> AuthorizationCode:
    """Return the present state of a code that another request used meanwhile."""
    return await store.find_code(conn, [code.digest]) or code


def is_verifier(text: str) -> bool:
    return _VERIFIER.fullmatch(text) is not None


def is_challenge(text: str) -> bool:
    """Tell whether this can be the SHA-256 of a verifier in base64url."""
    return _CHALLENGE.fullmatch(text) is not None


def challenge_of(verifier: str) -> str:
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def verifier_matches(verifier: str, challenge: str) -> bool:
    return is_verifier(verifier) and compare_digest(challenge_of(verifier), challenge)
