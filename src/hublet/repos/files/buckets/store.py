"""SQL of owners of buckets."""

from hublet.accounts.names import name_key
from hublet.core.database import Reader


async def owner_exists(conn: Reader, name: str) -> bool:
    found = await conn.fetch_value("SELECT 1 FROM names WHERE key = $1", name_key(name))
    return found is not None
