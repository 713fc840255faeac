"""Refresh tokens: found by value, replaced when used, with the sealed response for a retry.

The response is sealed with a key made from the refresh token that was used: neither the database nor
the hub's key ring opens it, only a client that sends that token once more.
"""

from hashlib import sha256

import msgspec

from hublet.core.database import Connection, Reader
from hublet.core.sealing import Key, KeyRing
from hublet.oauth.access import store
from hublet.oauth.access.records import IssuedTokens, RefreshToken
from hublet.tokens.records import Scope
from hublet.tokens.service import digests_of

_CONTEXT = "oauth_refreshes.sealed_answer"


class _StoredResponse(msgspec.Struct, frozen=True):
    access_token: str
    refresh_token: str
    expires_in: int
    scopes: list[Scope]


async def find(conn: Reader, value: str) -> RefreshToken | None:
    """Return the refresh token of this value, also when it does not work any more."""
    return await store.find_refresh_token(conn, digests_of(conn.hub.keys, value))


async def replace(conn: Connection, refresh: RefreshToken, *, sealed_response: bytes) -> bool:
    """Claim the right to issue the successor of a token; False when another request was faster."""
    return await store.replace_refresh_token(conn, refresh.token_id, sealed_answer=sealed_response)


def seal_response(issued: IssuedTokens, *, used_token: str) -> bytes:
    stored = _StoredResponse(
        access_token=issued.access_token,
        refresh_token=issued.refresh_token or "",
        expires_in=issued.expires_in,
        scopes=sorted(issued.scopes),
    )
    return _key_ring_of(used_token).seal(msgspec.json.encode(stored), context=_CONTEXT)


def unseal_response(sealed: bytes, *, used_token: str) -> IssuedTokens:
    plain = _key_ring_of(used_token).open(sealed, context=_CONTEXT)
    stored = msgspec.json.decode(plain, type=_StoredResponse)
    return IssuedTokens(
        access_token=stored.access_token,
        refresh_token=stored.refresh_token,
        expires_in=stored.expires_in,
        scopes=frozenset(stored.scopes),
    )


def _key_ring_of(used_token: str) -> KeyRing:
    # The token has 256 random bits, so its hash is a good key.
    return KeyRing(keys=(Key(id="presented", master=sha256(used_token.encode()).digest()),))
