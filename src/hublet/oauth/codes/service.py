"""Issuing and redeeming authorization codes."""

from base64 import urlsafe_b64encode
from datetime import timedelta

from hublet.core.clock import now, to_micros
from hublet.core.database import Connection, Reader
from hublet.core.ids import random_bytes
from hublet.oauth.codes import store
from hublet.oauth.codes.records import Code, NewCode

LIFE = timedelta(seconds=60)
# Who comes with a used code again ends what it gave, for as long as the code is remembered.
REMEMBERED = timedelta(days=1)

_DIGEST = "oauth-code"


async def issue(conn: Connection, code: NewCode) -> str:
    """Return the value of a new code, this once."""
    await store.remove_expired(conn, before=to_micros(now() - REMEMBERED))
    value = "ac_" + urlsafe_b64encode(random_bytes(32)).rstrip(b"=").decode()
    digest = conn.hub.keys.digest(_DIGEST, value).hex()
    await store.add(conn, code, digest=digest, expires_at=to_micros(now() + LIFE))
    return value


async def find(conn: Reader, value: str) -> Code | None:
    """Return the code of this value, also when it was used or has expired."""
    return await store.find(conn, [each.hex() for each in conn.hub.keys.digests(_DIGEST, value)])


async def use(conn: Connection, code: Code, *, access_id: str | None) -> bool:
    """Spend a code, for this access or in vain; False when somebody else was faster."""
    return await store.use(conn, code.digest, access_id=access_id)


async def find_again(conn: Reader, code: Code) -> Code:
    """Return what became of a code that somebody else was faster to use."""
    return await store.find(conn, [code.digest]) or code
