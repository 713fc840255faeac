"""Jobs for tests of those who look after them, and what the database says of one."""

from dataclasses import replace
from typing import Any

from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.jobs import service
from hublet.jobs.access import get_access_of_creator, get_creator
from hublet.jobs.records import Initiator, InitiatorType
from hublet.jobs.requests import REQUEST_ADAPTER
from hublet.runtime.supervisor.supervisor import Supervisor
from jobs.jobs_api import BODY
from people import a_user
from runtime.supervisor.scripted_runner import ScriptedRunner

_ATTEMPT = ("number", "handle", "launched_at", "started_at", "ended_at", "exit_code", "removed_at")


def set_jobs(database: Database, **changes: Any) -> None:
    """Change settings of jobs for those who are made from now on."""
    settings = database.hub.settings
    jobs = replace(settings.jobs, **changes)
    database.hub = replace(database.hub, settings=replace(settings, jobs=jobs))


def wait_for_wakes_alone(database: Database) -> None:
    """Let supervisors that are made from now on do nothing unless they are woken."""
    settings = database.hub.settings
    worker = replace(settings.worker, poll_seconds=3600)
    database.hub = replace(database.hub, settings=replace(settings, worker=worker))


def a_supervisor(database: Database, runner: ScriptedRunner) -> Supervisor:
    return Supervisor(database, new_object_id(), runner)


async def a_job(database: Database, owner: str = "ada", **body: Any) -> str:
    """Return the id of a new job; name only what the test is about."""
    user = await a_user(database, owner)
    async with database.transaction() as conn:
        creator = await get_creator(conn, user.id)
        job = await service.create(
            conn,
            access=await get_access_of_creator(conn, creator, user.id),
            initiator=Initiator(type=InitiatorType.user, id=user.id),
            request=REQUEST_ADAPTER.validate_python(BODY | body),
        )
    return job.id


async def cancel(database: Database, job_id: str, owner: str = "ada") -> None:
    user = await a_user(database, owner)
    async with database.transaction() as conn:
        creator = await get_creator(conn, user.id)
        access = await get_access_of_creator(conn, creator, user.id)
        await service.cancel(conn, access, job_id)


async def status(database: Database, job_id: str) -> tuple[str, str | None]:
    """Return the stage of a job and its message."""
    row = await _row(database, "SELECT stage, message FROM jobs WHERE id = $1", job_id)
    return row["stage"], row["message"]


async def column(database: Database, job_id: str, name: str) -> Any:
    row = await _row(database, f"SELECT {name} FROM jobs WHERE id = $1", job_id)
    return row[0]


async def _row(database: Database, sql: str, *values: Any) -> Any:
    async with database.read() as conn:
        row = await conn.fetch_one(sql, *values)
    assert row is not None
    return row


async def attempts(database: Database, job_id: str) -> list[dict[str, Any]]:
    async with database.read() as conn:
        rows = await conn.fetch_all(
            f"SELECT {', '.join(_ATTEMPT)} FROM job_attempts WHERE job_id = $1 ORDER BY number",
            job_id,
        )
    return [{name: row[name] for name in _ATTEMPT} for row in rows]


async def events(database: Database, job_id: str) -> list[tuple[str, str | None]]:
    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT stage, message FROM job_events WHERE job_id = $1 ORDER BY at, id", job_id
        )
    return [(row["stage"], row["message"]) for row in rows]
