"""What a worker does about volumes of jobs."""

from typing import Any

from hublet.core.database import Database
from hublet.core.queue import handles_slowly
from hublet.jobs.volumes import sweeping


@handles_slowly(sweeping.SWEEP)
async def sweep_volumes_of_jobs(database: Database, _body: dict[str, Any]) -> None:
    await sweeping.sweep(database)
