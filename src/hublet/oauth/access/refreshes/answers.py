"""The answer that a refresh gave, kept for a moment for who asks again.

It is sealed with a key made from the refresh token that was presented: neither the database
nor the hub's key ring opens it, only who brings that token once more.
"""

from hashlib import sha256

import msgspec

from hublet.core.sealing import Key, KeyRing
from hublet.oauth.access.records import Issued
from hublet.tokens.records import Scope

_CONTEXT = "oauth_refreshes.sealed_answer"


class _Kept(msgspec.Struct, frozen=True):
    access_token: str
    refresh_token: str
    expires_in: int
    scopes: list[Scope]


def seal(issued: Issued, *, presented: str) -> bytes:
    kept = _Kept(
        access_token=issued.access_token,
        refresh_token=issued.refresh_token or "",
        expires_in=issued.expires_in,
        scopes=sorted(issued.scopes),
    )
    return _ring_of(presented).seal(msgspec.json.encode(kept), context=_CONTEXT)


def unseal(sealed: bytes, *, presented: str) -> Issued:
    plain = _ring_of(presented).open(sealed, context=_CONTEXT)
    kept = msgspec.json.decode(plain, type=_Kept)
    return Issued(
        access_token=kept.access_token,
        refresh_token=kept.refresh_token,
        expires_in=kept.expires_in,
        scopes=frozenset(kept.scopes),
    )


def _ring_of(presented: str) -> KeyRing:
    # The token has 256 random bits, so its hash is as good a key as any.
    return KeyRing(keys=(Key(id="presented", master=sha256(presented.encode()).digest()),))
