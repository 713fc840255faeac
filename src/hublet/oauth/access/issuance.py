"""Issuance of tokens from an access: an access token, and mostly a refresh token.

Tokens are generated first and stored later, so that the sealed response, which depends on their values,
can be written in the statement that claims the right to issue them.
"""

from datetime import timedelta

from hublet.core.clock import now
from hublet.core.database import Connection
from hublet.core.dataclasses import dataclass
from hublet.core.hub import Hub
from hublet.oauth.access import store
from hublet.oauth.access.records import Holder, IssuedTokens
from hublet.oauth.records import Access, OAuthApp
from hublet.oauth.scopes import grants_of, reaches_inbox
from hublet.tokens import service as tokens
from hublet.tokens.format import TokenKind
from hublet.tokens.records import Grants, Scope, TokenRecord

# A refresh token that is not used for this long expires.
REFRESH_IDLE = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsavedTokens:
    """Generated tokens with their values, not stored yet."""

    issued: IssuedTokens
    access_token: tuple[TokenRecord, str]
    refresh_token: tuple[TokenRecord, str]


async def issue_tokens(
    conn: Connection, app: OAuthApp, access: Access, *, holder: Holder, scopes: frozenset[Scope]
) -> IssuedTokens:
    """Issue the first two tokens of an access."""
    unsaved = generate_tokens(conn.hub, app, access, holder=holder, scopes=scopes)
    await save_tokens(conn, unsaved, access, generation=1)
    return unsaved.issued


def generate_tokens(
    hub: Hub, app: OAuthApp, access: Access, *, holder: Holder, scopes: frozenset[Scope]
) -> UnsavedTokens:
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
    return UnsavedTokens(issued=issued, access_token=access_token, refresh_token=refresh_token)


async def save_tokens(
    conn: Connection, unsaved: UnsavedTokens, access: Access, *, generation: int
) -> None:
    """Store generated tokens; a later generation of the refresh token replaces the one before."""
    await tokens.add_tokens(conn, [unsaved.access_token, unsaved.refresh_token])
    refresh_id = unsaved.refresh_token[0].id
    await store.add_refresh_token(conn, refresh_id, access_id=access.id, generation=generation)


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
