"""Finding and replacing refresh tokens."""

from hublet.core.database import Connection, Reader
from hublet.oauth.access.refreshes import store
from hublet.oauth.access.refreshes.records import Refresh
from hublet.tokens.service import digests_of


async def find(conn: Reader, value: str) -> Refresh | None:
    """Return the refresh token of this value, whether or not it still works."""
    return await store.find(conn, digests_of(conn.hub.keys, value))


async def replace(conn: Connection, refresh: Refresh, *, sealed_answer: bytes) -> bool:
    """Claim the right to issue its successor; False when somebody else was faster."""
    return await store.replace(conn, refresh.token_id, sealed_answer=sealed_answer)
