"""Scheduled jobs for tests, one line each, through the API; and what the worker does with them."""

from datetime import timedelta
from typing import Any

import httpx2

from hublet.core import clock
from hublet.core.database import Database
from hublet.jobs.schedules.service import start_due
from jobs.jobs_api import BODY
from people import Headers

PATH = "/api/scheduled-jobs/ada"
HOURLY = {"schedule": "@hourly"}
# A machine's clock may be set back a little between two looks at it.
_A_LITTLE = timedelta(seconds=1)


async def a_schedule(
    client: httpx2.AsyncClient,
    headers: Headers,
    *,
    path: str = PATH,
    spec: dict[str, Any] | None = None,
    **body: Any,
) -> Any:
    """Return a new scheduled job, hourly unless said otherwise."""
    asked = HOURLY | {"jobSpec": BODY | (spec or {})} | body
    response = await client.post(path, headers=headers, json=asked)
    assert response.status_code == 200, response.text
    return response.json()


async def show(client: httpx2.AsyncClient, headers: Headers, scheduled_id: str) -> Any:
    response = await client.get(f"{PATH}/{scheduled_id}", headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


async def due_at(database: Database, scheduled_id: str) -> int:
    async with database.read() as conn:
        due: int = await conn.fetch_value(
            "SELECT next_run_at FROM scheduled_jobs WHERE id = $1", scheduled_id
        )
    return due


async def come_due(database: Database, scheduled_id: str, *, late: timedelta = _A_LITTLE) -> int:
    """Move the clock to the next run, or past it; return its time."""
    due = await due_at(database, scheduled_id)
    clock.move(timedelta(microseconds=due - clock.micros()) + late)
    return due


async def run_due(database: Database, scheduled_id: str) -> None:
    """Let the next run come, and a worker notice it."""
    await start_due(database, scheduled_id, due_at=await come_due(database, scheduled_id))


async def jobs_of(database: Database, scheduled_id: str) -> list[str]:
    """Return the ids of the jobs that it started, oldest first."""
    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT id FROM jobs WHERE initiator_type = 'scheduled-job' AND initiator_id = $1 "
            "ORDER BY created_at, id",
            scheduled_id,
        )
    return [row["id"] for row in rows]


async def reminders(database: Database) -> int:
    async with database.read() as conn:
        count: int = await conn.fetch_value(
            "SELECT count(*) FROM tasks WHERE kind = 'jobs.start-scheduled'"
        )
    return count
