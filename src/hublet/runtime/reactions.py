"""Tasks of the runtime in the worker: prune checkouts that no job mounts."""

from typing import Any

from hublet.core.database import Database
from hublet.core.queue import handles_slowly
from hublet.runtime.volumes import checkouts


@handles_slowly(checkouts.PRUNE_TASK)
async def prune_checkouts(database: Database, _body: dict[str, Any]) -> None:
    await checkouts.prune(database)
