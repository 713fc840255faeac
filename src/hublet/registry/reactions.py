"""Tasks of the registry: the garbage collection."""

from typing import Any

from hublet.core.database import Database
from hublet.core.queue import handles_slowly
from hublet.registry import collection
from hublet.storage.holds import after_backups


@handles_slowly(collection.COLLECT)
@after_backups(collection.COLLECT)
async def collect_garbage(database: Database, _body: dict[str, Any]) -> None:
    await collection.collect_hourly(database)
