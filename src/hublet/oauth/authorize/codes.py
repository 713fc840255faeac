"""Authorization codes: issued to a browser, redeemed by an app, once."""

from base64 import urlsafe_b64encode
from datetime import timedelta

from hublet.core.clock import now, to_micros
from hublet.core.database import Connection, Reader
from hublet.core.ids import random_bytes
from hublet.oauth.authorize import store
from hublet.oauth.authorize.records import AuthorizationCode, NewAuthorizationCode

CODE_LIFE = timedelta(seconds=60)
# Who comes with a used code again ends what it gave, for as long as the code is remembered.
REMEMBERED_AFTER_EXPIRY = timedelta(days=1)

_DIGEST = "oauth-code"


async def issue(conn: Connection, code: NewAuthorizationCode) -> str:
    """Return the value of a new code, this once."""
    await store.remove_expired_codes(conn, before=to_micros(now() - REMEMBERED_AFTER_EXPIRY))
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
    """Spend a code, for this access or in vain; False when somebody else was faster."""
    return await store.use_code(conn, code.digest, access_id=access_id)


async def find_again(conn: Reader, code: AuthorizationCode) -> AuthorizationCode:
    """Return what became of a code that somebody else was faster to use."""
    return await store.find_code(conn, [code.digest]) or code
