"""Telling an app about its own tokens."""

from datetime import datetime
from typing import Any

from hublet.core.database import Database, Reader
from hublet.oauth.access.refreshes import service as refreshes
from hublet.oauth.clients import authenticated
from hublet.oauth.errors import InvalidClient
from hublet.oauth.grants.records import TokenRequest
from hublet.oauth.records import App
from hublet.oauth.scopes import written
from hublet.tokens import service as tokens
from hublet.tokens.records import Scope, Token

INACTIVE: dict[str, Any] = {"active": False}


async def introspect(database: Database, request: TokenRequest) -> dict[str, Any]:
    """Tell what a token of the app's own may do; of any other, that it does not work."""
    value = request.get("token")
    async with database.read() as conn:
        app = await authenticated(conn, request.presented)
        if not app.confidential:
            raise InvalidClient("Introspection is for apps with a secret.")
        return await _of_access_token(conn, app, value) or await _of_refresh(conn, app, value)


async def _of_access_token(conn: Reader, app: App, value: str) -> dict[str, Any] | None:
    caller = await tokens.find_caller(conn, value)
    if caller is None or caller.token.app_id != app.id or caller.token.expires_at is None:
        return None
    token = caller.token
    return _shown(
        conn,
        app,
        {"scope": written(_scopes(token)), "username": caller.user_name, "sub": caller.user_id},
        issued_at=token.created_at,
        expires_at=caller.token.expires_at,
    ) | {"token_type": "bearer"}


def _scopes(token: Token) -> frozenset[Scope]:
    """Return the scopes as they were granted.

    What a token that is confined to an organization may do elsewhere follows from those.
    """
    everywhere = token.grants.everywhere if token.organization_id is None else frozenset[Scope]()
    return everywhere.union(*(grant.scopes for grant in token.grants.scoped))


async def _of_refresh(conn: Reader, app: App, value: str) -> dict[str, Any]:
    refresh = await refreshes.find(conn, value)
    if refresh is None or not refresh.is_alive or refresh.replaced_at is not None:
        return INACTIVE
    permission = refresh.access.permission
    if permission.app_id != app.id:
        return INACTIVE
    return _shown(
        conn,
        app,
        {
            "scope": written(permission.scopes),
            "username": refresh.user_name,
            "sub": permission.user_id,
        },
        issued_at=refresh.created_at,
        expires_at=refresh.expires_at,
    )


def _shown(
    conn: Reader,
    app: App,
    about: dict[str, Any],
    *,
    issued_at: datetime,
    expires_at: datetime,
) -> dict[str, Any]:
    base_url = conn.hub.settings.base_url
    return {
        "active": True,
        "client_id": app.client_id,
        **about,
        "iat": int(issued_at.timestamp()),
        "exp": int(expires_at.timestamp()),
        "iss": base_url,
        "aud": base_url,
    }
