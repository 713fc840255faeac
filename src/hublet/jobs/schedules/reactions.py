"""What the worker does by the clock."""

from typing import Any

from hublet.core.database import Database
from hublet.core.queue import handles_slowly
from hublet.jobs.schedules.service import START
from hublet.jobs.schedules.starting import start


@handles_slowly(START)
async def start_scheduled_job(database: Database, body: dict[str, Any]) -> None:
    await start(database, body["scheduled_job_id"], due_at=body["due_at"])
