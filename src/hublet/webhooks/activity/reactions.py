"""What a worker does about old deliveries."""

from typing import Any

from hublet.core.database import Database
from hublet.core.queue import handles_slowly
from hublet.webhooks.activity import pruning


@handles_slowly(pruning.PRUNE)
async def prune_deliveries(database: Database, _body: dict[str, Any]) -> None:
    await pruning.prune(database)
