"""SQL that tells which inboxes have changed."""

import json
from collections.abc import Collection

from hublet.core.database import Reader


async def versions_of(conn: Reader, user_ids: Collection[str]) -> dict[str, int]:
    """Return by user what grows with every change of an inbox; who has none yet is left out."""
    rows = await conn.fetch_all(
        "SELECT user_id, version FROM inboxes WHERE user_id IN each($1)",
        json.dumps(list(user_ids)),
    )
    return {row["user_id"]: row["version"] for row in rows}
