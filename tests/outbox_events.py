"""Events as they wait in the outbox."""

import json
from typing import Any

from hublet.core.database import Database
from hublet.core.outbox import Event


async def published_events(database: Database, *events: type[Event]) -> list[dict[str, Any]]:
    """Return the bodies of the events of these classes, oldest first."""
    kinds = {event.kind for event in events}
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT kind, body FROM outbox ORDER BY id")
    return [json.loads(row["body"]) for row in rows if row["kind"] in kinds]
