"""ID tokens: who signed in, for which app, and when."""

from base64 import urlsafe_b64encode
from collections.abc import Collection
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from hublet.core.clock import now
from hublet.core.database import Database
from hublet.oauth.claims import claims_of
from hublet.oauth.keys import service as keys
from hublet.oauth.records import App
from hublet.tokens.records import Scope

LIFE = timedelta(hours=1)


async def id_token_for(  # noqa: PLR0913 - all of it is in the token
    database: Database,
    *,
    app: App,
    user_id: str,
    scopes: frozenset[Scope],
    organization_ids: Collection[str],
    nonce: str | None,
    authenticated_at: datetime | None,
    access_token: str,
    session_id: str | None,
) -> str:
    async with database.read() as conn:
        claims = await claims_of(conn, user_id, scopes, organization_ids)
    issued_at = now()
    claims |= {
        "iss": database.hub.settings.base_url,
        "aud": app.client_id,
        "iat": int(issued_at.timestamp()),
        "exp": int((issued_at + LIFE).timestamp()),
        "at_hash": at_hash(access_token),
    }
    optional: dict[str, Any] = {
        "auth_time": int(authenticated_at.timestamp()) if authenticated_at else None,
        "nonce": nonce,
        "sid": session_id,
    }
    claims |= {name: value for name, value in optional.items() if value is not None}
    return await keys.sign(database, claims)


def at_hash(access_token: str) -> str:
    """Return the left half of the token's digest (OpenID Connect Core, 3.1.3.6)."""
    half = sha256(access_token.encode()).digest()[:16]
    return urlsafe_b64encode(half).rstrip(b"=").decode()
