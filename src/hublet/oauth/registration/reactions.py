"""What a worker does about apps that nobody uses."""

from typing import Any

from hublet.core.database import Database
from hublet.core.queue import handles_slowly
from hublet.oauth.registration import pruning


@handles_slowly(pruning.PRUNE)
async def prune_apps(database: Database, _body: dict[str, Any]) -> None:
    await pruning.prune(database)
