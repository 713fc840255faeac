"""Issuance of tokens from an access: an access token, and mostly a refresh token, which is found by its value
and replaced when it is used.

Tokens are generated first and stored later, those of many requests at once. The sealed response is sealed
with a key made from the refresh token that was used: neither the database nor the hub's key ring opens it,
only a client that sends that token once more.
"""

from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256

import msgspec

from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.hub import Hub
from hublet.core.sealing import Key, KeyRing
from hublet.oauth.access import store
from hublet.oauth.access.records import Holder, IssuedTokens, RefreshToken
from hublet.oauth.records import Access, OAuthApp
from hublet.oauth.scopes import grants_of, reaches_inbox
from hublet.tokens import service as tokens
from hublet.tokens.format import TokenKind
from hublet.tokens.records import Grants, Scope, TokenRecord
from hublet.tokens.service import digests_of

# A refresh token that is not used for this long expires.
REFRESH_IDLE = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsavedTokens:
    """Generated tokens with their values, not stored yet."""

    issued: IssuedTokens
    access_token: tuple[TokenRecord, str]
    refresh_token: tuple[TokenRecord, str]
    access_id: str
    generation: int


async def issue_tokens(
    conn: Connection, app: OAuthApp, access: Access, *, holder: Holder, scopes: frozenset[Scope]
) -> IssuedTokens:
    """Issue the first two tokens of an access."""
    unsaved = generate_tokens(conn.hub, app, access, holder=holder, scopes=scopes)
    await save_tokens(conn, [unsaved])
    return unsaved.issued


def generate_tokens(
    hub: Hub,
    app: OAuthApp,
    access: Access,
    *,
    holder: Holder,
    scopes: frozenset[Scope],
    generation: int = 1,
) -> UnsavedTokens:
    """Make the tokens of an access; a later generation replaces the refresh token before it."""
    access_token, seconds = _generate_access_token(hub, app, access, holder=holder, scopes=scopes)
    refresh_token = tokens.new_app_token(
        hub,
        kind=TokenKind.refresh,
        user_id=holder.user_id,
        name=app.name,
        grants=Grants(),
        expires_at=min(now() + REFRESH_IDLE, access.expires_at),
        app_id=app.id,
        access_id=access.id,
    )
    issued = IssuedTokens(
        access_token=access_token[1],
        expires_in=seconds,
        scopes=scopes,
        refresh_token=refresh_token[1],
    )
    return UnsavedTokens(
        issued=issued,
        access_token=access_token,
        refresh_token=refresh_token,
        access_id=access.id,
        generation=generation,
    )


async def save_tokens(conn: Connection, unsaved: Sequence[UnsavedTokens]) -> None:
    """Store generated tokens."""
    await tokens.add_tokens(
        conn, [token for each in unsaved for token in (each.access_token, each.refresh_token)]
    )
    await store.add_refresh_tokens(
        conn, [(each.refresh_token[0].id, each.access_id, each.generation) for each in unsaved]
    )


async def issue_access_token(
    conn: Connection, app: OAuthApp, access: Access, *, holder: Holder, scopes: frozenset[Scope]
) -> IssuedTokens:
    token, seconds = _generate_access_token(conn.hub, app, access, holder=holder, scopes=scopes)
    await tokens.add_tokens(conn, [token])
    return IssuedTokens(access_token=token[1], expires_in=seconds, scopes=scopes)


def _generate_access_token(
    hub: Hub, app: OAuthApp, access: Access, *, holder: Holder, scopes: frozenset[Scope]
) -> tuple[tuple[TokenRecord, str], int]:
    """Return the token with its value, and its life in seconds."""
    at = now()
    life = min(timedelta(seconds=app.token_seconds), access.expires_at - at)
    grants = grants_of(
        scopes,
        user=(holder.user_id, holder.user_name),
        organizations=holder.organizations,
        inbox=reaches_inbox(app.client_id, scopes),
    )
    token = tokens.new_app_token(
        hub,
        kind=TokenKind.oauth,
        user_id=holder.user_id,
        name=app.name,
        grants=grants,
        expires_at=at + life,
        app_id=app.id,
        access_id=access.id,
        resource=access.permission.resource,
    )
    return token, int(life.total_seconds())


_CONTEXT = "oauth_refreshes.sealed_answer"


class _StoredResponse(msgspec.Struct, frozen=True):
    access_token: str
    refresh_token: str
    expires_in: int
    scopes: list[Scope]


async def find_refresh_token(conn: Reader, value: str) -> RefreshToken | None:
    """Return the refresh token of this value, also when it does not work any more."""
    return await store.find_refresh_token(conn, digests_of(conn.hub.keys, value))


async def lock_refresh_tokens(conn: Connection, values: Sequence[str]) -> list[RefreshToken | None]:
    """Like `find_refresh_token` for many; nobody else uses or ends them before the commit."""
    digests = [digests_of(conn.hub.keys, value) for value in values]
    found = await store.lock_refresh_tokens(conn, [one for each in digests for one in each])
    return [next((found[one] for one in each if one in found), None) for each in digests]


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
