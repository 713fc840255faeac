"""ID tokens (OpenID Connect Core): issued to an app, and verified as a hint of who wants to sign out; and
claims about a user, the same in an ID token and in the response of userinfo.
"""

from base64 import urlsafe_b64encode
from collections.abc import Collection
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from hublet.accounts.avatars import avatar_url
from hublet.accounts.schemas import WIRE_PLANS
from hublet.accounts.users import store as users
from hublet.core.clock import now
from hublet.core.database import Database, Reader, Row
from hublet.core.dataclasses import dataclass
from hublet.oauth import signing_keys as keys
from hublet.oauth.records import OAuthApp
from hublet.tokens.records import Scope


async def claims_of(
    conn: Reader, user_id: str, scopes: frozenset[Scope], organization_ids: Collection[str]
) -> dict[str, Any]:
    """Return the claims about a user as far as the scopes reach.

    With `read-memberships` all organizations are included, with the role in each; without it, only
    the selected ones, by name.
    """
    rows = await users.whoami_rows(conn, user_id)
    base_url = conn.hub.settings.base_url
    claims: dict[str, Any] = {"sub": user_id}
    if Scope.profile in scopes:
        claims |= _profile_claims(rows[0], base_url)
    if Scope.email in scopes and rows[0]["email"] is not None:
        claims["email"] = rows[0]["email"]
        claims["email_verified"] = rows[0]["email_verified_at"] is not None
    if Scope.read_billing in scopes:
        claims["canPay"] = False
    if scopes & {Scope.profile, Scope.read_memberships}:
        claims["orgs"] = [
            _organization_claims(
                row, scopes, base_url, selected=row["organization_id"] in organization_ids
            )
            for row in rows
            if row["organization_id"] in organization_ids
            or (row["organization_id"] is not None and Scope.read_memberships in scopes)
        ]
    return claims


def _profile_claims(user: Row, base_url: str) -> dict[str, Any]:
    return {
        "name": user["fullname"],
        "preferred_username": user["name"],
        "profile": f"{base_url}/{user['name']}",
        "picture": avatar_url(base_url, user["id"]),
        "isPro": False,
    }


def _organization_claims(
    row: Row, scopes: frozenset[Scope], base_url: str, *, selected: bool
) -> dict[str, Any]:
    claims: dict[str, Any] = {
        "sub": row["organization_id"],
        "name": row["organization_fullname"],
        "preferred_username": row["organization_name"],
        "picture": avatar_url(base_url, row["organization_id"]),
    }
    if plan := WIRE_PLANS.get(row["plan"]):
        claims["plan"] = plan
    if Scope.read_memberships in scopes:
        claims["roleInOrg"] = row["role"]
    if Scope.read_billing in scopes and selected:
        claims["canPay"] = False
    return claims


ID_TOKEN_LIFE = timedelta(hours=1)
_MAX_HINT_LENGTH = 16_384


async def issue_id_token(  # noqa: PLR0913 - all of it is in the token
    database: Database,
    *,
    app: OAuthApp,
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
        "exp": int((issued_at + ID_TOKEN_LIFE).timestamp()),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class IdTokenHint:
    """Claims of an ID token that the hub issued, however old it is."""

    user_id: str
    client_id: str
    session_id: str | None


async def read_hint(conn: Reader, id_token: str | None) -> IdTokenHint | None:
    """Return the claims of a token that the hub signed; None for any other."""
    if not id_token or len(id_token) > _MAX_HINT_LENGTH or not id_token.isascii():
        return None
    claims = await _verified_claims(conn, id_token)
    if claims is None or claims.get("iss") != conn.hub.settings.base_url:
        return None
    return IdTokenHint(
        user_id=str(claims.get("sub")),
        client_id=str(claims.get("aud")),
        session_id=claims.get("sid"),
    )


async def _verified_claims(conn: Reader, id_token: str) -> dict[str, Any] | None:
    from joserfc import jws, jwt  # noqa: PLC0415 - loaded by those who need it, not at every start
    from joserfc.errors import JoseError  # noqa: PLC0415 - as above
    from joserfc.jwk import RSAKey  # noqa: PLC0415 - as above

    try:
        header = jws.extract_compact(id_token.encode()).headers()
        public = await keys.find_public(conn, str(header.get("kid")))
        if public is None:
            return None
        key = RSAKey.import_key(dict(public))
        return jwt.decode(id_token, key, algorithms=[keys.ALGORITHM]).claims
    except (JoseError, ValueError, TypeError):
        return None
