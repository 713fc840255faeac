"""Refresh tokens: found, replaced when used, and the sealed response kept for a retry."""

from hashlib import sha256

import msgspec

from hublet.core.database import Connection, Reader
from hublet.core.sealing import Key, KeyRing
from hublet.oauth.access import store
from hublet.oauth.access.records import IssuedTokens, RefreshToken
from hublet.tokens.records import Scope
from hublet.tokens.service import digests_of

# It is sealed with a key made from the refresh token that was presented: neither the database
# nor the hub's key ring opens it, only who brings that token once more.

_CONTEXT = "oauth_refreshes.sealed_answer"


class _StoredResponse(msgspec.Struct, frozen=True):
    access_token: str
    refresh_token: str
    expires_in: int
    scopes: list[Scope]


def seal_response(issued: IssuedTokens, *, presented: str) -> bytes:
    kept = _StoredResponse(
        access_token=issued.access_token,
        refresh_token=issued.refresh_token or "",
        expires_in=issued.expires_in,
        scopes=sorted(issued.scopes),
    )
    return _key_ring_of(presented).seal(msgspec.json.encode(kept), context=_CONTEXT)


def unseal_response(sealed: bytes, *, presented: str) -> IssuedTokens:
    plain = _key_ring_of(presented).open(sealed, context=_CONTEXT)
    kept = msgspec.json.decode(plain, type=_StoredResponse)
    return IssuedTokens(
        access_token=kept.access_token,
        refresh_token=kept.refresh_token,
        expires_in=kept.expires_in,
        scopes=frozenset(kept.scopes),
    )


def _key_ring_of(presented: str) -> KeyRing:
    # The token has 256 random bits, so its hash is as good a key as any.
    return KeyRing(keys=(Key(id="presented", master=sha256(presented.encode()).digest()),))


async def find(conn: Reader, value: str) -> RefreshToken | None:
    """Return the refresh token of this value, whether or not it still works."""
    return await store.find_refresh_token(conn, digests_of(conn.hub.keys, value))


async def replace(conn: Connection, refresh: RefreshToken, *, sealed_answer: bytes) -> bool:
    """Claim the right to issue its successor; False when somebody else was faster."""
    return await store.replace_refresh_token(conn, refresh.token_id, sealed_answer=sealed_answer)
