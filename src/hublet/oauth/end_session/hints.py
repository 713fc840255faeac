"""ID tokens that come back as a hint of who wants to sign out."""

from typing import Any

from hublet.core.database import Reader
from hublet.core.light_dataclasses import dataclass
from hublet.oauth.keys import service as keys

_LONGEST = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """What an ID token of ours says, however old it is."""

    user_id: str
    client_id: str
    session_id: str | None


async def read_hint(conn: Reader, id_token: str | None) -> Hint | None:
    """Return what the token says if we signed it; else it is no hint at all."""
    if not id_token or len(id_token) > _LONGEST or not id_token.isascii():
        return None
    claims = await _claims(conn, id_token)
    if claims is None or claims.get("iss") != conn.hub.settings.base_url:
        return None
    return Hint(
        user_id=str(claims.get("sub")),
        client_id=str(claims.get("aud")),
        session_id=claims.get("sid"),
    )


async def _claims(conn: Reader, id_token: str) -> dict[str, Any] | None:
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
