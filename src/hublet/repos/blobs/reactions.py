"""What a worker does about blobs."""

from typing import Any

from hublet.core.database import Database
from hublet.core.queue import handles_slowly
from hublet.repos.blobs import sweeping


@handles_slowly(sweeping.SWEEP)
async def sweep_blobs(database: Database, _body: dict[str, Any]) -> None:
    await sweeping.sweep(database)
