"""Jobs for tests, one line each, through the API."""

from typing import Any

import httpx2

from hublet.core.database import Database
from hublet.runtime.records import RunnerCapabilities
from hublet.runtime.supervisor.runner_selection import NullRunner, RunnerAvailability, RunnerChoice
from people import Headers

PATH = "/api/jobs/ada"
BODY = {"dockerImage": "ubuntu", "flavor": "cpu-basic", "command": ["true"]}


class Capable(RunnerAvailability):
    """A hub whose runner can do everything; nothing is run with it."""

    async def _chosen(self) -> RunnerChoice:
        capabilities = RunnerCapabilities(usable=True, sentence="It can.", network_groups=True)
        return RunnerChoice(runner=NullRunner(capabilities), capabilities=capabilities)


async def run(
    client: httpx2.AsyncClient, headers: Headers, *, path: str = PATH, **body: Any
) -> Any:
    """Return a new job; name only what the test is about."""
    response = await client.post(path, headers=headers, json=BODY | body)
    assert response.status_code == 200, response.text
    return response.json()


async def show(
    client: httpx2.AsyncClient, headers: Headers, job_id: str, *, path: str = PATH
) -> Any:
    response = await client.get(f"{path}/{job_id}", headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


async def refusal(
    client: httpx2.AsyncClient, headers: Headers, *, path: str = PATH, **body: Any
) -> tuple[int, Any]:
    """Return the status and the sentence with which a job is refused."""
    response = await client.post(path, headers=headers, json=BODY | body)
    return response.status_code, response.json().get("error")


async def set_row(database: Database, job_id: str, **columns: Any) -> None:
    """Let a job be as far as the one who looks after it would have brought it."""
    async with database.transaction() as conn:
        for name, value in columns.items():
            await conn.execute(f"UPDATE jobs SET {name} = $2 WHERE id = $1", job_id, value)


async def row_of(database: Database, job_id: str) -> dict[str, Any]:
    names = ["key", "due_at", "cancel_requested_at", "stage", "sealed_secrets", "spec", "version"]
    async with database.read() as conn:
        row = await conn.fetch_one(f"SELECT {', '.join(names)} FROM jobs WHERE id = $1", job_id)
    assert row is not None
    return {name: row[name] for name in names}


async def initiator_of(database: Database, job_id: str) -> tuple[str, str]:
    """Return what made a job start: its type and id, which only public clients are shown."""
    async with database.read() as conn:
        row = await conn.fetch_one(
            "SELECT initiator_type, initiator_id FROM jobs WHERE id = $1", job_id
        )
    assert row is not None
    return row["initiator_type"], row["initiator_id"]


async def an_attempt(database: Database, job_id: str, **columns: Any) -> None:
    """Let a job have an attempt, as the one who looks after it would keep it."""
    row = {"job_id": job_id, "number": 1, "runner": "none", "handle": "x", "launched_at": 0}
    row |= columns
    places = ", ".join(f"${place}" for place in range(1, len(row) + 1))
    async with database.transaction() as conn:
        await conn.execute(
            f"INSERT INTO job_attempts ({', '.join(row)}) VALUES ({places})", *row.values()
        )
